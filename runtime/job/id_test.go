package job_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const canonical = "0192d3f4-5a6b-7c8d-9e0f-a1b2c3d4e5f6"

func TestAnIDIsReadInEitherCaseAndWrittenInLower(t *testing.T) {
	want := job.ID{0x01, 0x92, 0xd3, 0xf4, 0x5a, 0x6b, 0x7c, 0x8d, 0x9e, 0x0f, 0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6}
	for _, text := range []string{canonical, strings.ToUpper(canonical)} {
		id, err := job.ParseID(text)
		require.NoError(t, err)
		require.Equal(t, want, id)
		require.Equal(t, canonical, id.String())
	}
	require.Equal(t, canonical, job.LeaseID(want).String())
}

func TestOtherFormsOfAUUIDAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"empty":              "",
		"too short":          canonical[:35],
		"too long":           canonical + "0",
		"without dashes":     strings.ReplaceAll(canonical, "-", ""),
		"in braces":          "{" + canonical + "}",
		"as a URN":           "urn:uuid:" + canonical,
		"a dash misplaced":   "0192d3f45-a6b-7c8d-9e0f-a1b2c3d4e5f6",
		"a dash for a digit": "-192d3f4-5a6b-7c8d-9e0f-a1b2c3d4e5f6",
		"a letter past f":    "0192d3g4-5a6b-7c8d-9e0f-a1b2c3d4e5f6",
		"a space":            " 192d3f4-5a6b-7c8d-9e0f-a1b2c3d4e5f6",
		"a wide digit":       "０92d3f4-5a6b-7c8d-9e0f-a1b2c3d4e5f6",
	} {
		t.Run(name, func(t *testing.T) {
			id, err := job.ParseID(text)
			require.ErrorIs(t, err, job.ErrBadID)
			require.Zero(t, id)
		})
	}
}

func TestAnIDIsAStringInJSON(t *testing.T) {
	id, err := job.ParseID(canonical)
	require.NoError(t, err)
	encoded, err := json.Marshal(id)
	require.NoError(t, err)
	require.Equal(t, `"`+canonical+`"`, string(encoded))

	var decoded job.ID
	require.NoError(t, json.Unmarshal(encoded, &decoded))
	require.Equal(t, id, decoded)

	untouched := id
	require.ErrorIs(t, json.Unmarshal([]byte(`"nonsense"`), &untouched), job.ErrBadID)
	require.Equal(t, id, untouched)
}

func FuzzParseID(f *testing.F) {
	f.Add(canonical)
	f.Add(strings.ToUpper(canonical))
	f.Add("")
	f.Add(strings.Repeat("-", 36))
	form := regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)
	f.Fuzz(func(t *testing.T, text string) {
		id, err := job.ParseID(text)
		require.Equal(t, form.MatchString(text), err == nil, text)
		if err == nil {
			require.Equal(t, strings.ToLower(text), id.String())
		}
	})
}
