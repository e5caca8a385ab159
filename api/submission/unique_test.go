package submission

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func pointers(t *testing.T, texts ...string) []job.Pointer {
	t.Helper()
	var all []job.Pointer
	for _, text := range texts {
		pointer, err := job.ParsePointer(text)
		require.NoError(t, err)
		all = append(all, pointer)
	}
	return all
}

func TestMembersAreFound(t *testing.T) {
	const payload = ` {"a": {"b": [1, {"c":"x"} ], "a/b~": true}, "n": null, "": 0, "d": 1, "d": {"e": 2}, "é": "é"} `
	for pointer, value := range map[string]string{
		"": strings.TrimSpace(payload), "/a/b/0": "1", "/a/b/1/c": `"x"`, "/a/a~1b~0": "true", "/n": "null", "/": "0", "/d/e": "2", "/é": `"é"`,
		"/a/b/2": "", "/a/b/-": "", "/a/b/00": "", "/a/b/c": "", "/x": "", "/n/x": "", "/a/b/0/x": "",
	} {
		require.Equal(t, value, string(Find([]byte(payload), pointers(t, pointer)[0])), pointer)
	}
	require.Nil(t, Find([]byte(`{"d":{"e":2},"d":1}`), job.Pointer{"d", "e"}), "the last d has no e")
	require.Equal(t, "5", string(Find([]byte(`"{\"a\": [5]}"`), job.Pointer{"a", "0"})), "handlers read JSON in a string")
	require.Nil(t, Find([]byte(`"{\"a\": 5} x"`), job.Pointer{"a"}), "not JSON")
	require.Equal(t, `"{}"`, string(Find([]byte(`"{}"`), job.Pointer{})))
}

func TestDigestsOfTheSameAreEqual(t *testing.T) {
	for _, same := range [][]string{
		{`{"a":1,"b":[true,null]}`, ` { "b" : [ true , null ] , "a" : 1 } `, `{"a":2,"b":[true,null],"a":1}`, `{"\u0061":1,"b":[true,null]}`},
		{`1.5`, `1.50`, `15e-1`, `0.15E+1`, `150e-2`},
		{`100`, `1e2`, `1.0e2`, `100.0`, `1000e-1`},
		{`0`, `-0`, `0.0`, `0e5`},
		{`-1e400`, `-10e399`, `-0.1e401`},
		{`12345678901234567890`, `1234567890123456789e1`},
		{`"é\n/😀"`, `"\u00e9\u000a\/\ud83d\ude00"`},
		{`{"x":{"b":1,"a":{"d":1,"c":2}}}`, `{"x":{"a":{"c":2,"d":1},"b":1}}`},
	} {
		for _, payload := range same {
			require.Equal(t, Digest("t", "A", []byte(same[0]), nil), Digest("t", "A", []byte(payload), nil), payload)
		}
	}
	payload := []byte(`{"a":1,"b":2}`)
	require.Equal(t, Digest("t", "A", payload, nil), Digest("t", "A", payload, pointers(t, "")))
	require.Equal(t, Digest("t", "A", payload, pointers(t, "/a", "/b")), Digest("t", "A", payload, pointers(t, "/b", "/a", "/b")))
	require.Equal(t, Digest("t", "A", payload, pointers(t, "/a")), Digest("t", "A", []byte(`{"c":3,"a":1.0}`), pointers(t, "/a")))
}

func TestDigestsOfWhatDiffersDiffer(t *testing.T) {
	seen := make(map[[32]byte]string)
	add := func(tenant, jobType, payload string, chosen ...string) {
		name := strings.Join(append([]string{tenant, jobType, payload}, chosen...), "|")
		digest := Digest(tenant, jobType, []byte(payload), pointers(t, chosen...))
		require.Empty(t, seen[digest], name)
		seen[digest] = name
	}
	for _, payload := range []string{
		`null`, `true`, `false`, `0`, `1`, `-1`, `10`, `0.1`, `1e31`, `1e32`, `1e99999999999999999999`, `"1"`, `""`, `"null"`, `[]`, `{}`, `[null]`, `[[]]`, `[[],[]]`,
		`["a","b"]`, `["b","a"]`, `["ab"]`, `[1,2]`, `[12]`, `{"a":null}`, `{"a":{}}`, `{"a":[]}`, `{"":""}`, `{"a":1,"b":2}`, `{"a":2,"b":1}`,
		`{"a":{"b":1}}`, `{"a":1,"b":{}}`, `"\ud800"`, `"\udfff"`, `"\ufffd"`, `"\udfff\ud800"`, `"\ud800\udfff"`, `12345678901234567890`, `12345678901234567891`,
	} {
		add("t", "A", payload)
	}
	add("tA", "", `null`)
	add("", "tA", `null`)
	add("u", "A", `null`)
	add("t", "B", `null`)
	add("t", "A", `{"a":null}`, "/a")
	add("t", "A", `{}`, "/a")
	add("t", "A", `{}`, "/b")
	add("t", "A", `{}`, "/a", "/b")
	add("t", "A", `{"a":1}`, "/a")
	add("t", "A", `{"a":1}`, "/a", "/b")
	add("t", "A", `{"a":"-"}`, "/a")
}

// FuzzDigest reads values again as encoding/json writes them.
func FuzzDigest(f *testing.F) {
	for _, seed := range []string{`{"b":1,"a":[1.50,"é"]}`, `"\ud800\u0041"`, `[{"a":{},"a":1}]`, `-0.0e1`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := scanner{text: text}
		if !s.value() || !s.atEnd() {
			return
		}
		rewritten := rewrite(t, text)
		if strings.Contains(string(rewritten), "\ufffd") { // encoding/json knows no lone surrogates
			return
		}
		require.Equal(t, Digest("t", "A", text, nil), Digest("t", "A", rewritten, nil), "%s and %s", text, rewritten)
	})
}

func TestTheDescriptionHasTheBoundsOfTheParser(t *testing.T) {
	described := reflect.TypeFor[v1.Submission]()
	for _, c := range []struct {
		member, tag string
		bound       int
	}{
		{"ConcurrencyKey", "maxLength", job.MaxKeyChars},
		{"ConcurrencyLimit", "maximum", job.MaxConcurrencyLimit},
		{"FairnessKey", "maxLength", job.MaxKeyChars},
		{"UniqueBy", "maxItems", job.MaxUniqueMembers},
		{"JobType", "maxLength", maxNameChars},
		{"Tenant", "maxLength", maxNameChars},
		{"IdempotencyKey", "maxLength", maxKeyBytes},
		{"Priority", "minimum", minPriority},
		{"Priority", "maximum", maxPriority},
		{"MaxAttempts", "maximum", maxAttempts},
		{"Tags", "maxItems", maxTags},
	} {
		field, found := described.FieldByName(c.member)
		require.True(t, found, c.member)
		require.Equal(t, strconv.Itoa(c.bound), field.Tag.Get(c.tag), "%s of %s", c.tag, c.member)
	}
	for _, member := range []string{"Delay", "TTL", "UniqueFor"} {
		field, _ := described.FieldByName(member)
		require.Contains(t, field.Tag.Get("doc"), "("+strings.TrimSuffix(job.MaxPeriod.String(), "0m0s")+")", member)
	}
	var named []string
	for _, field := range reflect.VisibleFields(described) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		named = append(named, name)
	}
	require.Equal(t, members, named)
}

// rewrite decodes a value and encodes it.
func rewrite(t *testing.T, text []byte) []byte {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	require.NoError(t, decoder.Decode(&value))
	rewritten, err := json.Marshal(value)
	require.NoError(t, err)
	return rewritten
}
