package schemaform_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/ui/schemaform"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

const letter = `{"type":"object","required":["to","subject","sender"],"$defs":{"who":{"type":"object","properties":{
	"name":{"type":"string"},"at":{"type":"string","format":"email"}}}},"properties":{
	"to":{"type":"array","items":{"type":"string"},"description":"Who gets it."},
	"subject":{"type":"string","maxLength":100},
	"sender":{"$ref":"#/$defs/who"},
	"copies":{"type":"integer","minimum":1,"maximum":9,"default":1},
	"weight":{"type":["number","null"]},
	"urgent":{"type":"boolean"},
	"paper":{"enum":["A4","letter",3]},
	"parts":{"type":"array","items":{"type":"object","required":["kind"],"properties":{"kind":{"type":"object","properties":{"a":{"type":"string"}}},"n":{"type":"integer"}}}},
	"any":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`

// submit is what a browser sends of a form: each field, and the marks that are set.
func submit(f *schemaform.Form) url.Values {
	sent := url.Values{"other": {"is not of the form"}}
	if f.Raw {
		sent.Set(schemaform.RawField, lines(f.Text))
		return sent
	}
	var add func(*schemaform.Field)
	add = func(one *schemaform.Field) {
		if one.IsGroup() {
			if one.MarkHidden || one.Marked {
				sent.Set(one.Mark, "on")
			}
			for _, within := range one.Fields {
				add(within)
			}
			return
		}
		text := one.Text
		for _, option := range one.Options {
			if option.Chosen {
				text = option.Value
			}
		}
		sent.Set(one.Name, lines(text))
	}
	add(f.Root)
	return sent
}

// lines end in the way of browsers.
func lines(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

// find returns the field at a place, such as to/0.
func find(t testing.TB, f *schemaform.Form, place string) *schemaform.Field {
	t.Helper()
	one := f.Root
	for part := range strings.SplitSeq(place, "/") {
		var found *schemaform.Field
		for i, within := range one.Fields {
			if within.Label == part || fmt.Sprint(i) == part && one.More != "" {
				found = within
			}
		}
		require.NotNil(t, found, "%s of %s", part, place)
		one = found
	}
	return one
}

func requireSame(t testing.TB, want, got string) {
	t.Helper()
	require.Equal(t, decoded(t, want), decoded(t, got), "%s\n%s", want, got)
}

// decoded keeps numbers to the letter.
func decoded(t testing.TB, text string) (value any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	require.NoError(t, d.Decode(&value), text)
	return value
}

func TestTheFieldsOfASchema(t *testing.T) {
	f := schemaform.Of(json.RawMessage(letter), json.RawMessage(`{"to":["a@b.c"],"copies":1e0,"paper":3,"extra":[1.50],"subject":7}`), "payload")
	var names []string
	for _, one := range f.Root.Fields {
		names = append(names, one.Label)
	}
	require.Equal(t, []string{"to", "subject", "sender", "copies", "weight", "urgent", "paper", "parts", "any", "Other members"}, names, "as in the schema")
	to := find(t, f, "to")
	require.True(t, to.Required)
	require.Equal(t, []string{"Who gets it."}, to.Help)
	require.Len(t, to.Fields, 2, "one, and one to fill in")
	require.Equal(t, "a@b.c", to.Fields[0].Text)
	require.Equal(t, "s:/mto/i0", to.Fields[0].Name)
	require.True(t, find(t, f, "subject").IsJSON(), "it has another type")
	require.Equal(t, "1e0", find(t, f, "copies").Text)
	require.Equal(t, []string{"From 1 to 9.", "Default: 1."}, find(t, f, "copies").Help)
	require.Equal(t, "numeric", find(t, f, "copies").Numeric)
	paper := find(t, f, "paper")
	require.True(t, paper.IsChoice())
	require.Equal(t, schemaform.Option{Value: "3", Label: "3", Chosen: true}, paper.Options[3])
	require.Equal(t, schemaform.Option{Value: `"A4"`, Label: "A4"}, paper.Options[1])
	require.True(t, find(t, f, "any").IsJSON())
	require.True(t, find(t, f, "sender").IsGroup(), "references are followed")
	require.Contains(t, find(t, f, "Other members").Text, "1.50")
}

func TestEmptyFieldsAreLeftOut(t *testing.T) {
	value, mistakes := schemaform.Value(submit(schemaform.Of(json.RawMessage(letter), nil)))
	require.Empty(t, mistakes)
	require.JSONEq(t, `{"to":[],"sender":{}}`, string(value), "but what is required is there")
	value, mistakes = schemaform.Value(submit(schemaform.Of(nil, nil)))
	require.Empty(t, mistakes)
	require.Nil(t, value)
}

func TestItemsMoveUp(t *testing.T) {
	sent := url.Values{"s:/mto/i0": {""}, "s:/mto/i3": {"b"}, "s:/mto/i10": {"c"}, "n:/mn/i1": {"x"}, "n:/mn/i2": {"1"}, "n:/mn/i3": {"y"}}
	value, mistakes := schemaform.Value(sent)
	require.JSONEq(t, `{"to":["b","c"],"n":[null,1,null]}`, string(value))
	require.Equal(t, []string{"#/n/0", "#/n/2"}, []string{mistakes[0].Location, mistakes[1].Location})
	f := schemaform.Sent(json.RawMessage(letter), sent)
	require.Equal(t, "c", find(t, f, "to/1").Text, "as they are counted then")
}

func TestItemsAreAdded(t *testing.T) {
	f := schemaform.Of(json.RawMessage(letter), json.RawMessage(`{"to":["a"]}`))
	sent := submit(f)
	sent.Set(schemaform.EditField, find(t, f, "to").More)
	f = schemaform.Sent(json.RawMessage(letter), sent)
	require.Len(t, find(t, f, "to").Fields, 5)
	require.Len(t, find(t, f, "parts").Fields, 1)
	require.Equal(t, "a", find(t, f, "to/0").Text)
}

func TestTheWholeIsEditedAsJSON(t *testing.T) {
	f := schemaform.Of(json.RawMessage(letter), json.RawMessage(`{"to":["a"],"copies":1.0}`))
	sent := submit(f)
	sent.Set(schemaform.EditField, schemaform.EditJSON)
	raw := schemaform.Sent(json.RawMessage(letter), sent)
	require.True(t, raw.Raw)
	requireSame(t, `{"to":["a"],"copies":1.0,"sender":{}}`, raw.Text)

	sent = submit(raw)
	value, mistakes := schemaform.Value(sent)
	require.Empty(t, mistakes)
	requireSame(t, raw.Text, string(value))
	sent.Set(schemaform.EditField, schemaform.EditForm)
	require.Equal(t, "a", find(t, schemaform.Sent(json.RawMessage(letter), sent), "to/0").Text)

	sent.Set(schemaform.RawField, `{"to"`)
	again := schemaform.Sent(json.RawMessage(letter), sent)
	require.True(t, again.Raw, "a form cannot show it")
	require.Equal(t, `{"to"`, again.Text)
	_, mistakes = schemaform.Value(sent)
	require.Contains(t, mistakes[0].Message, "is not JSON")
}

func TestMistakesAreAtTheirFields(t *testing.T) {
	value := json.RawMessage(`{"to":["a","b"],"any":{"x":[1]},"a/b":1}`)
	f := schemaform.Of(json.RawMessage(letter), value, "payload")
	f.Mark([]v1.Mistake{
		{Location: "#/payload/to/1", Message: "is no address"},
		{Location: "#/payload/subject", Message: "is required"},
		{Location: "#/payload/any/x/0", Message: "is low"},
		{Location: "#/payload/a~1b", Message: "is odd"},
		{Location: "#/tags", Message: "elsewhere"},
		{Location: "query.limit", Message: "elsewhere"},
		{Location: "#/payload", Message: "is long"},
	})
	require.Equal(t, "is no address", find(t, f, "to/1").Mistake)
	require.Equal(t, "is required", find(t, f, "subject").Mistake)
	require.Equal(t, "x/0: is low", find(t, f, "any").Mistake)
	require.Equal(t, "a/b: is odd; is long", f.Root.Mistake)
	require.Empty(t, find(t, f, "to").Mistake)

	f = schemaform.Sent(json.RawMessage(letter), url.Values{schemaform.RawField: {"{}"}}, "payload")
	f.Mark([]v1.Mistake{{Location: "#/payload/to", Message: "is required"}})
	require.Equal(t, []string{"to: is required"}, f.Mistakes)
}

func TestWhatCannotBeSentIsShownAsItWasTyped(t *testing.T) {
	f := schemaform.Of(json.RawMessage(letter), json.RawMessage(`{"any":1,"x":1}`), "payload")
	sent := submit(f)
	sent.Set(find(t, f, "copies").Name, "many")
	sent.Set(find(t, f, "any").Name, "{")
	sent.Set(find(t, f, "Other members").Name, "[]")
	_, mistakes := schemaform.Value(sent)
	require.Len(t, mistakes, 1, "%v: the members that the schema does not name come first", mistakes)
	sent.Set(find(t, f, "Other members").Name, "")
	_, mistakes = schemaform.Value(sent)
	require.Len(t, mistakes, 2)
	again := schemaform.Sent(json.RawMessage(letter), sent, "payload")
	again.Mark(again.Under(mistakes))
	require.Equal(t, "many", find(t, again, "copies").Text)
	require.Contains(t, find(t, again, "copies").Mistake, "must be a number")
	require.Equal(t, "{", find(t, again, "any").Text)
	require.Contains(t, find(t, again, "any").Mistake, "is not JSON")
}

func TestForeignFieldsAreIgnored(t *testing.T) {
	value, mistakes := schemaform.Value(url.Values{
		"s:/mto": {"a"}, "s:to": {"x"}, "s:/x": {"x"}, "s:/i-1": {"x"}, "s:/i99999999999999999999": {"x"}, "z:/ma": {"x"}, "": {"x"}, "s": {"x"},
		"s:" + strings.Repeat("/ma", 17): {"x"}, "priority": {"5"},
	})
	require.Empty(t, mistakes)
	require.JSONEq(t, `{"to":"a"}`, string(value))
}

// Any value comes back as it was, through any schema, whether it fits or not.
func TestValuesComeBackAsTheyWere(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		schema := randomSchema(random, 0)
		value := randomValue(random, 0)
		if random.IntN(3) > 0 {
			value = valueFor(random, schema)
		}
		text, err := json.Marshal(schema)
		require.NoError(t, err)
		f := schemaform.Of(text, json.RawMessage(value))
		for range 2 {
			sent := submit(f)
			got, mistakes := schemaform.Value(sent)
			require.Empty(t, mistakes, "seed %d: %s %s", seed, text, value)
			want := decoded(t, value)
			require.Equal(t, filled(schema, want), decoded(t, string(got)), "seed %d: %s %s", seed, text, value)
			f = schemaform.Sent(text, sent) // and so they do once more
		}
	}
}

// filled adds the groups that a form sends although they were missing: those that are required.
func filled(schema map[string]any, value any) any {
	object, isObject := value.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	if !isObject || len(properties) == 0 || schema["type"] != "object" {
		if list, isList := value.([]any); isList && schema["type"] == "array" {
			items, _ := schema["items"].(map[string]any)
			for i := range list {
				list[i] = filled(items, list[i])
			}
		}
		return value
	}
	for _, name := range schema["required"].([]string) {
		member := properties[name].(map[string]any)
		inner, _ := member["properties"].(map[string]any)
		if _, has := object[name]; !has && member["type"] == "object" && len(inner) > 0 {
			object[name] = map[string]any{}
		} else if !has && member["type"] == "array" && member["items"] != nil {
			object[name] = []any{}
		}
	}
	for name, member := range object {
		if of, named := properties[name].(map[string]any); named {
			object[name] = filled(of, member)
		}
	}
	return object
}

var memberNames = []string{"a", "b~/c", "ü ", "", "0"}

func randomSchema(random *rand.Rand, depth int) map[string]any {
	kinds := 8
	if depth > 1 {
		kinds = 6
	}
	switch random.IntN(kinds) {
	case 0:
		return map[string]any{"type": "string"}
	case 1:
		return map[string]any{"type": "integer"}
	case 2:
		return map[string]any{"type": []string{"number", "null"}}
	case 3:
		return map[string]any{"type": "boolean"}
	case 4:
		return map[string]any{"enum": []any{"x", 1, nil, map[string]any{"a": 1}}}
	case 5:
		return map[string]any{"anyOf": []any{}}
	case 6:
		return map[string]any{"type": "array", "items": randomSchema(random, depth+1)}
	}
	properties, required := map[string]any{}, []string{}
	for _, name := range memberNames {
		if random.IntN(2) == 0 {
			properties[name] = randomSchema(random, depth+1)
			if random.IntN(2) == 0 {
				required = append(required, name)
			}
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// valueFor is a value that fits the schema, mostly.
func valueFor(random *rand.Rand, schema map[string]any) string {
	switch {
	case random.IntN(10) == 0:
		return randomValue(random, 1)
	case schema["properties"] != nil:
		var members []string
		for name, of := range schema["properties"].(map[string]any) {
			if random.IntN(3) > 0 {
				quoted, _ := json.Marshal(name)
				members = append(members, string(quoted)+":"+valueFor(random, of.(map[string]any)))
			}
		}
		if random.IntN(3) == 0 {
			members = append(members, `"not named":`+randomValue(random, 1))
		}
		return "{" + strings.Join(members, ",") + "}"
	case schema["items"] != nil:
		var items []string
		for range random.IntN(4) {
			items = append(items, valueFor(random, schema["items"].(map[string]any)))
		}
		return "[" + strings.Join(items, ",") + "]"
	case schema["type"] == "string":
		return []string{`"x"`, `""`, `" y "`, `"\n1\n2\n"`, `"<b>"`, `"\u0000"`, `"a\rb"`, `"\ud800"`, `"😀\t"`, `"null"`}[random.IntN(10)]
	case schema["type"] == "boolean":
		return []string{"true", "false"}[random.IntN(2)]
	case schema["enum"] != nil:
		return []string{`"x"`, "1", "null", `{"a":1}`, "2"}[random.IntN(5)]
	}
	return []string{"0", "-1", "1.0", "1e400", "12345678901234567890123", "0.10", "null"}[random.IntN(7)]
}

func randomValue(random *rand.Rand, depth int) string {
	kinds := 8
	if depth > 2 {
		kinds = 6
	}
	switch random.IntN(kinds) {
	case 0, 1, 2, 3:
		return []string{"1.50", "true", "null", `"text"`}[random.IntN(4)]
	case 4:
		return `""`
	case 5:
		return []string{"{}", "[]", "[[]]", "[null]"}[random.IntN(4)]
	case 6:
		return "[" + randomValue(random, depth+1) + "," + randomValue(random, depth+1) + "]"
	}
	quoted, _ := json.Marshal(memberNames[random.IntN(len(memberNames))])
	return "{" + string(quoted) + ":" + randomValue(random, depth+1) + "}"
}
