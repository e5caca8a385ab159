package api_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// sharing is a job type whose handler declares where its keys are.
func sharing() []job.TypeSpec {
	return []job.TypeSpec{{Type: "INVOICE", MaxAttempts: 1, Terms: &job.TypeTerms{
		ConcurrencyKey: "/customer/id", KeyClass: "customer", ConcurrencyLimit: 2, OnConflict: job.ConflictCancelNewcomer, FairnessKey: "/re~1gion",
	}}}
}

func TestKeysComeFromThePayloadUnlessTheSubmissionHasThem(t *testing.T) {
	keyed := func(key string) job.Terms {
		return job.Terms{ConcurrencyKey: key, ConcurrencyLimit: 2, OnConflict: job.ConflictCancelNewcomer}
	}
	for members, want := range map[string]job.Terms{
		`"payload":{"customer":{"id":42}}`:             keyed("customer:42"),
		`"payload":{"customer":{"id":"42"}}`:           keyed("customer:42"),
		`"payload":{"customer":{"id":42.0}}`:           keyed("customer:42"),
		`"payload":{"customer":{"id":4.2e1}}`:          keyed("customer:42"),
		`"payload":{"customer":{"id":-1.50}}`:          keyed("customer:-1.5"),
		`"payload":{"customer":{"id":"a:b \u00e9"}}`:   keyed("customer:a:b é"),
		`"payload":{"customer":{"id":1,"id":2}}`:       keyed("customer:2"),
		`"payload":"{\"customer\": {\"id\": 42}}"`:     keyed("customer:42"),
		`"payload":{"customer":{"id":null}}`:           {},
		`"payload":{"customer":{}}`:                    {},
		`"payload":{"customer":"id"}`:                  {},
		`"payload":[1]`:                                {},
		`"priority":1`:                                 {},
		`"payload":{"re/gion":"eu"}`:                   {FairnessKey: "eu"},
		`"payload":{"re/gion":"eu"},"fairnessKey":"a"`: {FairnessKey: "a"},
		`"payload":{"re/gion":{}},"fairnessKey":"a"`:   {FairnessKey: "a"},
		`"concurrencyKey":"own"`:                       keyed("own"),
		`"payload":{"customer":{"id":42}},"concurrencyKey":"own","concurrencyLimit":7,"onConflict":"queue"`: {
			ConcurrencyKey: "own", ConcurrencyLimit: 7, OnConflict: job.ConflictQueue,
		},
		`"payload":{"customer":{"id":42}},"concurrencyLimit":7`: {
			ConcurrencyKey: "customer:42", ConcurrencyLimit: 7, OnConflict: job.ConflictCancelNewcomer,
		},
	} {
		l := newLedger()
		l.declared = sharing()
		answer := send(newAPI(t, l), "POST", "/jobs", `{"jobType":"INVOICE",`+members+`}`)
		require.Equal(t, 202, answer.Code, "%s: %s", members, answer.Body)
		require.Equal(t, want, l.submitted[0].Terms, members)
	}
}

func TestWhatCannotBeAKeyIsRefusedAtItsPlace(t *testing.T) {
	const id, region = "#/payload/customer/id", "#/payload/re~1gion"
	for members, want := range map[string]struct{ message, place string }{
		`"payload":{"customer":{"id":true}}`:                               {"must be a string or a number: the concurrency key of INVOICE comes from it", id},
		`"payload":{"customer":{"id":{}}}`:                                 {"must be a string or a number", id},
		`"payload":{"customer":{"id":[]}}`:                                 {"must be a string or a number", id},
		`"payload":{"customer":{"id":""}}`:                                 {"must not be empty", id},
		`"payload":{"customer":{"id":"a\u0000"}}`:                          {"control characters", id},
		`"payload":{"customer":{"id":"` + strings.Repeat("x", 192) + `"}}`: {"is longer than 200 characters", id},
		`"payload":{"re/gion":false}`:                                      {"must be a string or a number: the fairness key of INVOICE comes from it", region},
		`"concurrencyLimit":1`:                                             {"needs concurrencyKey", "#/concurrencyLimit"},
		`"payload":{"customer":{"id":null}},"onConflict":"queue"`:          {"needs concurrencyKey", "#/onConflict"},
	} {
		l := newLedger()
		l.declared = sharing()
		answer := send(newAPI(t, l), "POST", "/jobs", `{"jobType":"INVOICE",`+members+`}`)
		require.Equal(t, 422, answer.Code, members)
		require.Contains(t, answer.Body.String(), want.message, members)
		require.Contains(t, answer.Body.String(), `"location":"`+want.place+`"`, members)
	}
}
