package job_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Operations under way have their filter in this form, also in the form of earlier versions, which
// had the names of the fields.
func TestAKeptFilterStaysReadable(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	id := job.ID{15: 7}
	want := job.Filter{
		States: []job.State{job.Dead, job.Created}, Type: "T", Tenant: "acme", Tag: "x", WithoutScheduled: true, WithoutHeld: true, Worker: "w",
		Code: "timeout", Fingerprint: "8d8f5b0d3c6c5a3e", Payload: "text", Parent: id, CreatedFrom: at, CreatedBefore: at, FrozenAt: at, After: id, Limit: 3,
	}
	for version, kept := range map[string]string{
		"earlier": `{"States": ["dead", "created"], "Type": "T", "Tenant": "acme", "Tag": "x", "WithoutScheduled": true, "WithoutHeld": true, "Worker": "w",
			"Code": "timeout", "Fingerprint": "8d8f5b0d3c6c5a3e", "Payload": "text", "Parent": "00000000-0000-0000-0000-000000000007",
			"CreatedFrom": "2026-11-23T12:00:00Z", "CreatedBefore": "2026-11-23T12:00:00Z", "FrozenAt": "2026-11-23T12:00:00Z",
			"After": "00000000-0000-0000-0000-000000000007", "Limit": 3}`,
		"this": `{"states": ["dead", "created"], "type": "T", "tenant": "acme", "tag": "x", "withoutScheduled": true, "withoutHeld": true, "worker": "w",
			"code": "timeout", "fingerprint": "8d8f5b0d3c6c5a3e", "payload": "text", "parent": "00000000-0000-0000-0000-000000000007",
			"createdFrom": "2026-11-23T12:00:00Z", "createdBefore": "2026-11-23T12:00:00Z", "frozenAt": "2026-11-23T12:00:00Z",
			"after": "00000000-0000-0000-0000-000000000007", "limit": 3}`,
	} {
		strict := json.NewDecoder(strings.NewReader(kept))
		strict.DisallowUnknownFields()
		var got job.Filter
		require.NoError(t, strict.Decode(&got), version)
		require.Equal(t, want, got, version)
		if version == "this" {
			written, err := json.Marshal(want)
			require.NoError(t, err)
			require.JSONEq(t, kept, string(written))
		}
	}
	fields := reflect.TypeFor[job.Filter]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		require.Equal(t, name == "Within", reflect.ValueOf(want).Field(i).IsZero(), "%s is to be kept, too", name)
		require.NotEmpty(t, fields.Field(i).Tag.Get("json"), "%s has no name that stays", name)
	}
}
