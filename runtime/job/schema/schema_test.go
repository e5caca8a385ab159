package schema_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job/schema"
)

func compile(t testing.TB, text string) *schema.Schema {
	t.Helper()
	compiled, err := schema.Compile(json.RawMessage(text))
	require.NoError(t, err)
	return compiled
}

// check returns the violations as "pointer: message".
func check(t testing.TB, schemaText, payload string) []string {
	t.Helper()
	var found []string
	for _, v := range compile(t, schemaText).Check(json.RawMessage(payload)) {
		found = append(found, v.Pointer+": "+v.Message)
	}
	return found
}

func TestEveryKeywordHasAMessageAtItsPlace(t *testing.T) {
	const sleep = `{"type":"object","required":["sleepSeconds"],"properties":{"sleepSeconds":{"type":"integer","minimum":1,"maximum":300}}}`
	for _, c := range []struct {
		schema, payload string
		want            []string
	}{
		{sleep, `{"sleepSeconds": 5}`, nil},
		{sleep, `{"sleepSeconds": 5.0, "more": []}`, nil},
		{sleep, `{}`, []string{"/sleepSeconds: is required"}},
		{sleep, `{"sleepSeconds": "5"}`, []string{"/sleepSeconds: must be an integer"}},
		{sleep, `{"sleepSeconds": 0}`, []string{"/sleepSeconds: must be at least 1"}},
		{sleep, `{"sleepSeconds": 300.5}`, []string{"/sleepSeconds: must be an integer"}},
		{sleep, `{"sleepSeconds": 301}`, []string{"/sleepSeconds: must be at most 300"}},
		{sleep, `null`, []string{": must be an object"}},
		{`{"type":["string","null","array"]}`, `1`, []string{": must be a string, an array or null"}},
		{`{"anyOf":[{"$ref":"#/$defs/o"},{"type":"null"}],"$defs":{"o":{"type":"object"}}}`, `1`, []string{": must be an object or null"}},
		{`{"anyOf":[{"$ref":"#/$defs/o"},{"type":"null"}],"$defs":{"o":{"type":"object","required":["a"]}}}`, `{}`, []string{"/a: is required"}},
		{`{"anyOf":[{"required":["text"]},{"required":["html"],"properties":{"html":{"minLength":1}}}]}`, `{"html":""}`, []string{": fits none of the forms that are allowed: text is required; or html must not be empty"}},
		{
			`{"oneOf":[{"properties":{"kind":{"const":"a"},"x":{"type":"string"}}},{"properties":{"kind":{"const":"b"},"y":{"type":"string"}}}]}`,
			`{"kind":"b","x":1,"y":1}`,
			[]string{"/y: must be a string"},
		},
		{`{"oneOf":[{"type":"integer"},{"minimum":1}]}`, `2`, []string{": 'oneOf' failed, subschemas 0, 1 matched"}},
		{`{"allOf":[{"minimum":3},{"multipleOf":0.5}]}`, `2.25`, []string{": must be a multiple of 0.5", ": must be at least 3"}},
		{`{"exclusiveMinimum":0,"type":"number"}`, `0`, []string{": must be greater than 0"}},
		{`{"exclusiveMaximum":1e-3}`, `1`, []string{": must be less than 0.001"}},
		{`{"const":{"a":"<&>"}}`, `1`, []string{`: must be {"a":"<&>"}`}},
		{`{"enum":["a",1,null]}`, `"secret"`, []string{`: must be one of "a", 1, null`}},
		{`{"enum":["a"]}`, `"secret"`, []string{`: must be "a"`}},
		{`{"pattern":"^a+$"}`, `"secret"`, []string{": must match the pattern ^a+$"}},
		{`{"format":"date-time"}`, `"secret"`, []string{": must be a valid date-time"}},
		{`{"format":"one of our own"}`, `"secret"`, nil},
		{`{"minLength":2,"maxLength":3}`, `"é"`, []string{": must have at least 2 characters"}},
		{`{"maxLength":1}`, `"éé"`, []string{": must have at most 1 character"}},
		{`{"minItems":1}`, `[]`, []string{": must have at least 1 item"}},
		{`{"maxItems":1,"uniqueItems":true}`, `[1,2,1.0]`, []string{": items at 0 and 2 are equal", ": must have at most 1 item"}},
		{`{"prefixItems":[true],"items":false}`, `[1,2]`, []string{"/1: is not allowed"}},
		{`{"contains":{"type":"null"}}`, `[1,2]`, []string{": no items match contains schema"}},
		{`{"minProperties":1}`, `{}`, []string{": must have at least 1 member"}},
		{`{"maxProperties":0}`, `{"a":1}`, []string{": must have at most 0 members"}},
		{`{"additionalProperties":false,"properties":{"a":true}}`, `{"c":1,"b":1,"a":1}`, []string{"/b: is not known", "/c: is not known"}},
		{`{"properties":{"a":true},"unevaluatedProperties":false}`, `{"b":1}`, []string{"/b: is not allowed"}},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, []string{"/b: is required"}},
		{`{"not":{"type":"string"}}`, `"secret"`, []string{": has a form that the schema excludes"}},
		{`{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, []string{"/b: is required"}},
		{`{"properties":{"a/b":{"items":{"properties":{"~":{"type":"null"}}}}}}`, `{"a/b":[1,{"~":2}]}`, []string{"/a~1b/1/~0: must be null"}},
		{`{"items":{"type":"null"}}`, `[null,1,null,1,null,null,null,null,null,null,1]`, []string{"/1: must be null", "/3: must be null", "/10: must be null"}},
		{`false`, `1`, []string{": is not allowed"}},
		{`true`, `1`, nil},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"string"}},"items":[{"$ref":"#/definitions/a"}]}`, `[1]`, []string{"/0: must be a string"}},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}`, `1`, []string{": must be greater than 1"}},
	} {
		require.Equal(t, c.want, check(t, c.schema, c.payload), "%s against %s", c.payload, c.schema)
	}
}

func TestNamesOfMembersAreCheckedAtTheirPlaces(t *testing.T) {
	const text = `{"additionalProperties":{"propertyNames":{"maxLength":2},"additionalProperties":{"type":"integer"}}}`
	for range 20 { // members come in any order
		require.Equal(t, []string{
			"/a/xxx: has a name that must have at most 2 characters", "/b/y: must be an integer", "/b/yyy: has a name that must have at most 2 characters",
		}, check(t, text, `{"a":{"xxx":1},"b":{"yyy":1,"y":"1"},"c":{"zz":1}}`))
	}
}

func TestNumbersAreExact(t *testing.T) {
	const text = `{"maximum":12345678901234567890,"multipleOf":0.1}`
	require.Empty(t, check(t, text, `12345678901234567890`))
	require.Empty(t, check(t, text, `0.3`))
	require.Equal(t, []string{": must be at most 12345678901234567890"}, check(t, text, `12345678901234567891`))
	require.Empty(t, check(t, `{"const":9007199254740993}`, `9007199254740993`))
	require.NotEmpty(t, check(t, `{"const":9007199254740993}`, `9007199254740992`))
}

func TestJSONTextInAStringIsReadWhereNoStringFits(t *testing.T) {
	const object = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	for _, c := range []struct {
		schema, payload string
		want            []string
	}{
		{object, `"{\"n\": 5}"`, nil},
		{object, `"{\"n\": 5.5}"`, []string{"/n: must be an integer"}},
		{object, `"{}"`, []string{"/n: is required"}},
		{object, `"{"`, []string{": must be an object"}},
		{object, `"5"`, []string{": must be an object"}},
		{object, `"\"{\\\"n\\\": 5}\""`, []string{": must be an object"}}, // once, as handlers do
		{object, `"` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `"`, []string{": is nested more than 100 levels deep"}},
		{`{"anyOf":[` + object + `,{"type":"null"}]}`, `"{\"n\": 5}"`, nil},
		{`{"anyOf":[` + object + `,{"type":"null"}]}`, `"{\"n\": true}"`, []string{"/n: must be an integer"}},
		{`{"type":"string","maxLength":1}`, `"5555"`, []string{": must have at most 1 character"}},
		{`{"type":"string"}`, `"{\"n\": 5.5}"`, nil},
		{`{"type":"integer"}`, `"5"`, nil},
	} {
		require.Equal(t, c.want, check(t, c.schema, c.payload), "%s against %s", c.payload, c.schema)
	}
}

func TestViolationsAreBoundedAndDeterministic(t *testing.T) {
	members := map[string]any{}
	for i := range 3000 {
		members[fmt.Sprintf("m%04d", i)] = []any{"secret", "secret"}
	}
	payload, err := json.Marshal(members)
	require.NoError(t, err)
	compiled := compile(t, `{"additionalProperties":{"items":{"allOf":[{"type":"integer"},{"type":"integer"},{"type":"null"}]}}}`)
	first := compiled.Check(payload)
	require.Len(t, first, schema.MaxViolations)
	require.Equal(t, schema.Violation{Pointer: "/m0000/0", Message: "must be an integer"}, first[0])
	require.Equal(t, schema.Violation{Pointer: "/m0000/0", Message: "must be null"}, first[1])
	require.Equal(t, "/m0004/1", first[19].Pointer)
	for range 5 {
		require.Equal(t, first, compiled.Check(payload))
	}
}

func TestNoValueThatWasSentIsRepeated(t *testing.T) {
	for _, text := range []string{
		`{"pattern":"x"}`, `{"format":"uuid"}`, `{"enum":["a"]}`, `{"const":1}`, `{"maxLength":1}`, `{"type":"null"}`, `{"not":true}`,
		`{"anyOf":[{"const":1},{"pattern":"x"},{"format":"ipv4"}]}`, `{"propertyNames":false}`,
	} {
		for _, payload := range []string{`"geheim"`, `{"a":"geheim"}`, `"\"geheim\""`} {
			require.NotContains(t, strings.Join(check(t, text, payload), "\n"), "geheim", text)
		}
	}
}

func TestASchemaThatCannotBeUsedIsRefusedAtItsPlace(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.json")
	require.NoError(t, os.WriteFile(outside, []byte(`{}`), 0o600))
	for text, want := range map[string]string{
		`{`:   "it is not JSON",
		`{}}`: "it is not JSON",
		`[]`:  "it is neither an object nor a boolean",
		`{"properties":{"a/b":{"type":"strin"}}}`:                         `at /properties/a~1b/type: it must be one of "array", "boolean"`,
		`{"items":[{"type":"string"}]}`:                                   "at /items: it must be",
		`{"properties":{"a":{"pattern":"(?=x)"}}}`:                        "at /properties/a/pattern: it must be a valid regex: error parsing regexp",
		`{"pattern":"` + strings.Repeat("a", 5000) + `"}`:                 "at /pattern: it must be a valid regex: 5000 bytes are more than 4096",
		`{"pattern":"` + strings.Repeat("a{999}", 6) + `"}`:               "it takes too many steps",
		`{"$ref":"file://` + outside + `"}`:                               `outside.json" refers to something outside of the schema`,
		`{"allOf":[{"$ref":"other.json#/a"}]}`:                            `"other.json" refers to something outside`,
		`{"$id":"https://example.com/a","properties":{"b":{"$ref":"c"}}}`: `"https://example.com/c" refers to`,
		`{"$schema":"https://example.com/meta"}`:                          `"https://example.com/meta" refers to`,
		`{"$dynamicRef":"http://127.0.0.1/a"}`:                            `"http://127.0.0.1/a" refers to`,
		`{"$ref":"http://json-schema.org/../a"}`:                          "refers to something outside",
		`{"properties":{"a":{"$ref":"#/$defs/a"}}}`:                       `"#/$defs/a" not found`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#"}]}}}`:     "it refers to itself without end",
		`{"maximum":1e401}`:                                               "a number of more than 400 digits",
		strings.Repeat(`{"not":`, 101) + `{}` + strings.Repeat(`}`, 101):  "nested more than 100 levels deep",
		`{"enum":[` + strings.Repeat("1,", 10_000) + `1]}`:                "values, more than 10000",
		`{"description":"` + strings.Repeat("x", schema.MaxBytes) + `"}`:  "bytes are more than 262144",
		`{"$schema":"http://json-schema.org/draft-04/schema","id":7}`:     "at /id: it must be a string",
		`{"x":{"type":7},"$ref":"#/x"}`:                                   "at /x/type",
		`{"properties":{"x":{"$id":"a"},"y":{"$id":"a"}}}`:                "duplicate id",
		`{"patternProperties":{"[":{}}}`:                                  "has a name that must be a valid regex: error parsing regexp: missing closing ]",
	} {
		_, err := schema.Compile(json.RawMessage(text))
		require.ErrorContains(t, err, want, "%.200s", text)
		require.NotContains(t, err.Error(), "schema://", "%.200s", text)
	}
}

func TestReferencesWithinTheSchemaAreFollowed(t *testing.T) {
	const tree = `{"$id":"https://example.com/tree","$ref":"#/$defs/tree","$defs":{"tree":{"$anchor":"tree","type":"object",
		"properties":{"children":{"type":"array","items":{"$ref":"https://example.com/tree#tree"}}}}}}`
	require.Empty(t, check(t, tree, `{"children":[{"children":[]},{}]}`))
	require.Equal(t, []string{"/children/0/children/1: must be an object"}, check(t, tree, `{"children":[{"children":[{},1]}]}`))
	require.Equal(t, []string{"/type: must be a string or an array"},
		check(t, `{"$ref":"https://json-schema.org/draft/2020-12/meta/validation","properties":{"type":{"type":["string","array"]}}}`, `{"type":7}`)[:1])
}

// bounded is how much processor time a check may take with the race detector. A busy machine, on
// which one took 15 s, does not count the time of others, but is slower. Work without a bound
// grows exponentially with these payloads, or with the square of their length.
const bounded = time.Minute

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func TestNoPayloadTakesLong(t *testing.T) {
	const branches = `{"$defs":{"e":{"oneOf":[
		{"properties":{"op":{"const":"a"},"of":{"items":{"$ref":"#/$defs/e"}}}},{"properties":{"op":{"const":"b"},"of":{"items":{"$ref":"#/$defs/e"}}}},
		{"properties":{"op":{"const":"c"},"of":{"items":{"$ref":"#/$defs/e"}}}},{"properties":{"op":{"const":"d"},"of":{"items":{"$ref":"#/$defs/e"}}}}]}},
		%s}`
	const nested = `{"$defs":{"e":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/e"}},{"type":"array","items":{"$ref":"#/$defs/e"}}]}},%s}`
	brackets := strings.Repeat("[", 60) + "1" + strings.Repeat("]", 60)
	deep := strings.Repeat(`{"op":"x","of":[`, 45) + strings.Repeat(`]}`, 45)
	for _, c := range []struct{ schema, payload, want string }{
		{fmt.Sprintf(branches, `"$ref":"#/$defs/e"`), deep, "takes too many steps"},
		{fmt.Sprintf(nested, `"$ref":"#/$defs/e"`), brackets, "takes too many steps"},
		{fmt.Sprintf(nested, `"not":{"$ref":"#/$defs/e"}`), brackets, "takes too many steps"},
		{fmt.Sprintf(nested, `"if":{"$ref":"#/$defs/e"},"then":false`), brackets, "takes too many steps"},
		{`{"type":"array","items":{"type":"integer"}}`, `[` + strings.Repeat("1e400,", 150_000) + `1]`, ""},
		{`{"type":"array","items":{"type":"integer","multipleOf":7}}`, `[` + strings.Repeat("1,", 500_000) + `7]`, "must be a multiple of 7"},
		{`{"type":"array","items":{"type":"string"}}`, `[` + strings.Repeat("1,", 500_000) + `7]`, "must be a string"},
		{`{"type":"array","uniqueItems":true}`, `[` + strings.Repeat(`"a",`, 200_000) + `7]`, "items at 0 and 1 are equal"},
		{`{"type":"integer"}`, `1e1000000`, "holds a number of more than 400 digits"},
		{`{"type":"integer"}`, `1E+0000000000401`, "holds a number of more than 400 digits"},
		{`{"type":"integer"}`, strings.Repeat("9", 1_000_000), "holds a number of more than 400 digits"},
		{`{"pattern":"^(a?){900}$"}`, `"` + strings.Repeat("a", 10_000) + `"`, "must match the pattern"},
	} {
		compiled := compile(t, c.schema)
		began := processorTime(t)
		found := compiled.Check(json.RawMessage(c.payload))
		took := processorTime(t) - began
		if c.want == "" {
			require.Empty(t, found)
		} else {
			require.NotEmpty(t, found)
			require.Contains(t, found[0].Message, c.want)
		}
		require.Less(t, took, bounded, c.schema)
		t.Logf("%s for %.60s", took, c.schema)
	}
}

// These schemas are legal. Their work does not depend on how often they are evaluated, or
// grows faster than the payload.
func TestAnExpensiveSchemaIsCheckedInBoundedTime(t *testing.T) {
	numbers := make([]string, 5000)
	for i := range numbers {
		numbers[i] = fmt.Sprintf("%d.5", i)
	}
	items := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	enum := `{"items":{"enum":[` + strings.Join(numbers, ",") + `]}}`
	twenty := `[0.5,1.5,2.5,3.5,4.5,5.5,6.5,7.5,8.5,9.5,10.5,11.5,12.5,13.5,14.5,15.5,16.5,17.5,18.5,19.5]`
	contains := `{"items":{"contains":{"contains":{"contains":{"contains":{"const":1}}}}}}`
	for strings.Count(contains, "contains") < 40 {
		contains = `{"contains":` + contains + `,"minContains":0,"maxContains":0}`
	}
	alternatives := `{"items":{"anyOf":` + items(500, `{"contains":{"contains":{"const":1}}}`) + `}}`
	names := make([]string, 4000)
	for i := range names {
		names[i] = fmt.Sprintf(`"n%d"`, i)
	}
	for name, c := range map[string]struct{ schema, payload, want string }{
		"large enum, all fit":         {enum, items(20_000, "4999.50"), ""},
		"large enum, none fits":       {enum, items(20_000, "5000.5"), "must be one of 0.5"},
		"enum of equal numbers":       {`{"enum":[1.0,"1",[1],{"a":1e2}]}`, `{"a":100}`, ""},
		"short lists of unique items": {`{"items":{"uniqueItems":true}}`, items(10_000, twenty), ""},
		"contains in contains":        {alternatives, items(500, items(20, items(20, "2"))), "takes too many steps"},
		"deep contains":               {contains, items(3000, items(10, "1")), ""},
		"many required names":         {`{"items":{"required":[` + strings.Join(names, ",") + `]}}`, items(40_000, "{}"), "takes too many steps"},
		"patterns for many members": {
			`{"items":{"patternProperties":{"(a|b|c)+z":true,"(d|e)+y":true,"(f|g)+x":true}}}`,
			items(2000, `{"`+strings.Repeat("abc", 100)+`":1,"`+strings.Repeat("def", 100)+`":1}`), "takes too many steps",
		},
	} {
		t.Run(name, func(t *testing.T) {
			compiled := compile(t, c.schema)
			began := processorTime(t)
			found := compiled.Check(json.RawMessage(c.payload))
			took := processorTime(t) - began
			if c.want == "" {
				require.Empty(t, found)
			} else {
				require.NotEmpty(t, found)
				require.Contains(t, found[0].Message, c.want)
			}
			t.Logf("%s", took)
			require.Less(t, took, bounded)
		})
	}
}

func TestOneSchemaServesManyGoroutines(t *testing.T) {
	compiled := compile(t, `{"type":"object","required":["n"],"properties":{"n":{"type":"integer","minimum":500}},"propertyNames":{"maxLength":1}}`)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 200 {
				n := rand.IntN(1000)
				found := compiled.Check(json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)))
				if (n < 500) != (len(found) == 1) {
					t.Errorf("%d: %v", n, found)
				}
			}
		})
	}
	all.Wait()
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"minimum":1}}}`), []byte(`{"a":0}`))
	f.Add([]byte(`{"anyOf":[{"const":1},{"items":{"$ref":"#"}}],"propertyNames":{"pattern":"a"}}`), []byte(`"[[{}]]"`))
	f.Add([]byte(`{"$schema":"http://json-schema.org/draft-07/schema","format":"uri","uniqueItems":true}`), []byte(`[1,1e3]`))
	f.Fuzz(func(t *testing.T, text, payload []byte) {
		compiled, err := schema.Compile(text)
		if err != nil || !json.Valid(payload) {
			return
		}
		found := compiled.Check(payload)
		require.LessOrEqual(t, len(found), schema.MaxViolations)
		require.Equal(t, found, compiled.Check(payload))
	})
}

func BenchmarkCheck(b *testing.B) {
	const email = `{"type":"object","required":["to","subject"],"properties":{"to":{"oneOf":[{"type":"string","pattern":"@"},
		{"type":"array","items":{"type":"string"}}]},"subject":{"type":"string"},"text":{"type":"string"}}}`
	for name, c := range map[string]struct{ schema, payload string }{
		"small":   {`{"type":"object","required":["n"],"properties":{"n":{"type":"integer","minimum":1,"maximum":300}}}`, `{"n":5}`},
		"email":   {email, `{"to":["ada@example.com"],"subject":"Hello","text":"` + strings.Repeat("Hold fast. ", 100) + `"}`},
		"refused": {email, `{"to":5}`},
	} {
		b.Run(name, func(b *testing.B) {
			compiled := compile(b, c.schema)
			payload := json.RawMessage(c.payload)
			b.ReportAllocs()
			for b.Loop() {
				compiled.Check(payload)
			}
		})
	}
}
