package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type letter struct {
	To      string            `json:"to"`
	Headers map[string]string `json:"headers"`
	List    []part            `json:"list"`
	Part    part              `json:"part"`
	Pointer *part             `json:"pointer"`
	Parts   map[string]part   `json:"parts"`
	Any     any               `json:"any"`
	Raw     json.RawMessage   `json:"raw"`
	Own     own               `json:"own"`
	Keep    string            `json:"ſ"`
	carried
	*Deeper
	Named carried `json:",inline"`
	Count int     `json:"count,string"`
	Plain string
	At    time.Time `json:"at"`
	Skip  string    `json:"-"`
}

type part struct {
	A int    `json:"a"`
	B string `json:"b"`
	// More makes the type contain itself.
	More []part `json:"more"`
}

type carried struct {
	Inner string `json:"inner"`
	Clash string `json:"clash"`
}

type Deeper struct {
	Deep  string `json:"deep"`
	Clash string `json:"clash"`
	CLASH string
}

// own decodes itself, by the names as they are written.
type own struct{ Names []string }

func (o *own) UnmarshalJSON(text []byte) error {
	var members map[string]json.RawMessage
	err := json.Unmarshal(text, &members)
	o.Names = slices.Sorted(maps.Keys(members))
	return err
}

func TestOnlyExactNamesAreDecodedAndTheLastOfEach(t *testing.T) {
	for text, want := range map[string]string{
		`{"to":"good","TO":"evil"}`:                        `{"to":"good"}`,
		`{"TO":"evil","to":"good"}`:                        `{"to":"good"}`,
		`{"To":"evil"}`:                                    `{}`,
		`{"To":"evil","tO":1}`:                             `{}`,
		`{"to":"first","to":"last"}`:                       `{"to":"last"}`,
		`{"to":"first","t\u006f":"last"}`:                  `{"t\u006f":"last"}`,
		`{"to":"first","to":null}`:                         `{"to":null}`,
		`{"\u0054O":"evil","headers":{}}`:                  `{"headers":{}}`,
		`{"headers":{"a":"1"},"headers":{"b":"2"}}`:        `{"headers":{"b":"2"}}`,
		`{"headers":{"a":"1","A":"2","a":"3"}}`:            `{"headers":{"A":"2","a":"3"}}`,
		`{"list":[{"a":1,"b":"x"}],"list":[{"b":"y"}]}`:    `{"list":[{"b":"y"}]}`,
		`{"list":[{"A":1,"b":"x"},{"a":2,"B":"y"}]}`:       `{"list":[{"b":"x"},{"a":2}]}`,
		`{"part":{"a":1,"A":2,"more":[{"B":"x"}]}}`:        `{"part":{"a":1,"more":[{}]}}`,
		`{"pointer":{"A":2}}`:                              `{"pointer":{}}`,
		`{"parts":{"x":{"A":2},"X":{"a":1}}}`:              `{"parts":{"x":{},"X":{"a":1}}}`,
		`{"any":{"a":1,"A":{"b":1,"b":2}}}`:                `{"any":{"a":1,"A":{"b":2}}}`,
		`{"raw":{"a":1,"A":{"b":1,"b":2}},"RAW":1}`:        `{"raw":{"a":1,"A":{"b":2}}}`,
		`{"own":{"a":1,"A":1,"a":2}}`:                      `{"own":{"A":1,"a":2}}`,
		`{"s":"a Latin s", "ſ":"a long one"}`:              `{"ſ":"a long one"}`,
		`{"inner":"x","INNER":"y","Inner":"z"}`:            `{"inner":"x"}`,
		`{"deep":"x","DEEP":"y"}`:                          `{"deep":"x"}`,
		`{"clash":"two at one depth","CLASH":"a third"}`:   `{"CLASH":"a third"}`,
		`{"Named":{"inner":"x","INNER":"y"},"named":{}}`:   `{"Named":{"inner":"x"}}`,
		`{"count":"1","Count":"2"}`:                        `{"count":"1"}`,
		`{"Plain":"x","plain":"y"}`:                        `{"Plain":"x"}`,
		`{"Skip":"x","-":"y","at":"2030-01-01T00:00:00Z"}`: `{"at":"2030-01-01T00:00:00Z"}`,
		` { "TO" : 1 , "to" : "a" , "x" : [ { } , 2 ] } `:  ` { "to" : "a" } `,
		`{"x":{"to":1},"y":[1,{"to":2}]}`:                  `{}`,
		`{}`:                                               `{}`,
		`[{"TO":1}]`:                                       `[{"TO":1}]`,
		`"{"`:                                              `"{"`,
		`{"TO":1`:                                          `{"TO":1`,
	} {
		require.Equal(t, want, string(prune([]byte(text), reflect.TypeFor[letter]())), text)
	}
}

func TestATextWithNothingToLeaveOutIsNotCopied(t *testing.T) {
	text := []byte(`{"to":"a","part":{"a":1,"more":[{"b":"x"}]},"headers":{"x":"y","X":"z"}}`)
	require.Same(t, &text[0], &prune(text, reflect.TypeFor[letter]())[0])
}

func TestObjectsOfManyMembersAreReadInTheSameWay(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, `,"m%d":{"a":%d,"A":7}`, i%300, i)
	}
	var got map[string]part
	require.NoError(t, Unmarshal([]byte("{"+text.String()[1:]+"}"), &got))
	require.Len(t, got, 300)
	for i := range 300 {
		want := i + 900
		if i >= 100 {
			want = i + 600
		}
		require.Equal(t, want, got[fmt.Sprint("m", i)].A)
	}
}

// TestMembersAreThoseOfEncodingJSON asks encoding/json which names it knows.
func TestMembersAreThoseOfEncodingJSON(t *testing.T) {
	type (
		Inner struct{ X, Y int }
		Other struct {
			X int
			Z int `json:"Y"`
		}
		inner  struct{ Q int }
		number int
		Total  int
		Twice  struct{ Inner }
		Again  struct{ Inner }
		Loop   struct {
			X int
			*Inner
		}
		Middle struct {
			Inner
			M int
		}
		Left  struct{ Middle }
		Right struct{ *Middle }
		Self  struct {
			X int
			*Self
		}
	)
	for _, value := range []any{
		struct{ X, Y int }{}, struct{ Inner }{}, struct{ *Inner }{}, struct {
			Inner
			Other
		}{}, struct {
			Inner
			X int
		}{}, struct {
			Twice
			Again
		}{}, struct{ inner }{}, struct {
			number
			Total
		}{}, struct {
			Inner `json:"named"`
		}{}, struct {
			A int `json:"a,omitempty"`
			B int `json:",omitempty"`
			E int `json:"with space"`
			F int `json:"é"`
			g int
		}{}, struct {
			A int `json:"B"`
			B int
		}{}, Loop{}, Self{}, struct {
			Left
			Right
		}{}, struct {
			Twice
			Inner
		}{}, struct {
			Left
			Twice
		}{}, struct {
			Loop
			Again
			Self
		}{}, tagged(`json:"same"`, `json:"same"`), tagged(`json:"-,"`, `json:"-"`), tagged(`json:"bad\"name"`, ``),
	} {
		of, odd := value.(reflect.Type)
		if !odd {
			of = reflect.TypeOf(value)
		}
		members := membersOf(of)
		for _, name := range append(slices.Collect(maps.Keys(members)), "g", "q2", "Inner", "inner", `bad"name`, "-,", "") {
			decoder := json.NewDecoder(strings.NewReader(`{` + quote(t, name) + `:null}`))
			decoder.DisallowUnknownFields()
			err := decoder.Decode(reflect.New(of).Interface())
			member, known := members[name]
			require.Equal(t, err == nil, known && !member.ignored, "%s of %s: %v", name, of, err)
		}
	}
}

// tagged is a struct of the fields A and B with tags that linters refuse.
func tagged(a, b reflect.StructTag) reflect.Type {
	return reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[int](), Tag: a}, {Name: "B", Type: reflect.TypeFor[int](), Tag: b},
	})
}

func quote(t *testing.T, name string) string {
	t.Helper()
	quoted, err := json.Marshal(name)
	require.NoError(t, err)
	return string(quoted)
}

// TestDecodingIsThatOfTheTreeThatSchemasSee compares with a tree in which the
// last of several members has won, and from which other names are taken.
func TestDecodingIsThatOfTheTreeThatSchemasSee(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "A", "b", "B", "more", "MORE", "More", "x"}
	var value func(depth int) string
	value = func(depth int) string {
		if depth == 0 || random.IntN(4) == 0 {
			return []string{"1", `"text"`, "null", "true"}[random.IntN(4)]
		}
		var items []string
		object := random.IntN(3) > 0
		for range random.IntN(5) {
			item := value(depth - 1)
			if object {
				item = `"` + names[random.IntN(len(names))] + `" : ` + item
			}
			items = append(items, item)
		}
		if object {
			return "{" + strings.Join(items, " ,") + "}"
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	for range 20_000 {
		text := value(5)
		var tree any
		require.NoError(t, json.Unmarshal([]byte(text), &tree))
		seen, err := json.Marshal(pruned(tree))
		require.NoError(t, err)
		var want, got part
		wantErr, gotErr := json.Unmarshal(seen, &want), Unmarshal([]byte(text), &got)
		require.Equal(t, wantErr == nil, gotErr == nil, "%s: %v, %v", text, wantErr, gotErr)
		if wantErr == nil {
			require.Equal(t, want, got, text)
		}
	}
}

// pruned is a tree for a part, without the names that it does not know.
func pruned(tree any) any {
	object, ok := tree.(map[string]any)
	if !ok {
		return tree
	}
	maps.DeleteFunc(object, func(name string, _ any) bool { return !slices.Contains([]string{"a", "b", "more"}, name) })
	if list, ok := object["more"].([]any); ok {
		for i := range list {
			list[i] = pruned(list[i])
		}
	}
	return object
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{`{"to":1,"TO":[{}]}`, `{"any":{"a":1,"a":{"b":2}},"list":[{"A":"\\\""}]}`, `[[{"a":1}],{}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		left := prune(text, reflect.TypeFor[letter]())
		require.Equal(t, json.Valid(text), json.Valid(left))
		require.True(t, bytes.Equal(left, prune(left, reflect.TypeFor[letter]())), "twice is once")
	})
}

func BenchmarkUnmarshal(b *testing.B) {
	text := []byte(`{"to":"somebody@example.com","headers":{"a":"b"},"list":[{"a":1,"b":"x"},{"a":2,"b":"y"}],"Plain":"` + strings.Repeat("x", 200) + `"}`)
	for name, unmarshal := range map[string]func([]byte, any) error{"exact": Unmarshal, "json": json.Unmarshal} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var into letter
				if err := unmarshal(text, &into); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
