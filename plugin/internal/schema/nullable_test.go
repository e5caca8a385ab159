package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job/schema"
)

type (
	shade    string
	blob     []byte
	hue      uint8
	hues     []hue
	counts   map[string]*int
	choice   string
	embedded struct {
		Inner  int `json:"inner"`
		Shared int `json:"shared"`
	}
	maybe    struct{ Far, Away string }
	hidden   int
	shadowed struct {
		embedded
		*maybe
		hidden
		netip.Prefix `json:"prefix"`
		Shared       string `json:"shared"`
	}
	zoo struct {
		Bool     bool               `json:"bool"`
		Small    int8               `json:"small"`
		Unsigned uint16             `json:"unsigned,omitempty"`
		Wide     uint64             `json:"wide"`
		Pointer  uintptr            `json:"pointer"`
		Real     float32            `json:"real"`
		Quoted   int                `json:"quoted,string"`
		Doubted  *bool              `json:"doubted,string"`
		Text     shade              `json:"text"`
		Number   json.Number        `json:"number"`
		Raw      json.RawMessage    `json:"raw"`
		Any      any                `json:"any"`
		At       time.Time          `json:"at"`
		Wait     time.Duration      `json:"wait,omitzero"`
		Site     *url.URL           `json:"site"`
		Where    url.URL            `json:"where"`
		Blob     blob               `json:"blob"`
		Hues     hues               `json:"hues"`
		Fixed    [3]*int            `json:"fixed"`
		Bytes    [2]byte            `json:"bytes"`
		Lists    [][]string         `json:"lists"`
		Pointers []*embedded        `json:"pointers"`
		Twice    **embedded         `json:"twice"`
		Keys     map[int]string     `json:"keys"`
		Unsign   map[uint]any       `json:"unsign,omitempty"`
		Addrs    map[netip.Addr]int `json:"addrs"`
		Counts   counts             `json:"counts"`
		Inline   struct {
			A []int `json:"a"`
			B *struct{ C int }
		} `json:"inline"`
		Tree   tree     `json:"tree"`
		Trees  *tree    `json:"trees,omitempty"`
		Shadow shadowed `json:"shadow"`
		Left   int      `json:"-"`
		secret int
	}
	mapped map[string][]tree
	listed []zoo
)

// fill puts random values into v, nil and empty ones too. Deeper values are
// emptier.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case time.Time:
		at := time.Unix(r.Int64N(1<<33), r.Int64N(1e9)).In(time.FixedZone("", 60*r.IntN(1000)))
		v.Set(reflect.ValueOf(at))
		return
	case json.Number:
		v.SetString(fmt.Sprint(r.NormFloat64()))
		return
	case json.RawMessage:
		v.SetBytes([]byte([]string{`null`, `{"a":[1]}`, `"x"`}[r.IntN(3)]))
		return
	case netip.Addr:
		v.Set(reflect.ValueOf(netip.AddrFrom4([4]byte{byte(r.Uint32())})))
		return
	case netip.Prefix, url.URL:
		return
	}
	empty := depth > 5 || r.IntN(4) == 0
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt([]int64{0, -1, r.Int64(), -1 << (v.Type().Bits() - 1), 1<<(v.Type().Bits()-1) - 1}[r.IntN(5)] << (64 - v.Type().Bits()) >> (64 - v.Type().Bits()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(r.Uint64() >> (64 - v.Type().Bits()) >> r.IntN(64))
	case reflect.Float32:
		v.SetFloat(float64(r.Float32() * 1e30))
	case reflect.Float64:
		v.SetFloat(r.NormFloat64() * 1e300)
	case reflect.String:
		v.SetString([]string{"", "é\x00<", "\xff"}[r.IntN(3)])
	case reflect.Interface:
		v.Set(reflect.ValueOf(map[string]any{"a": []any{nil, 1.5}}))
	case reflect.Pointer:
		if !empty && v.CanSet() {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth+1)
		}
	case reflect.Slice:
		if !empty {
			v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Map:
		if empty {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, key, depth+1)
			fill(r, value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() {
				fill(r, field, depth+1)
			}
		}
	}
}

// randomType makes a type that no author has thought of.
func randomType(r *rand.Rand, depth int) reflect.Type {
	leaves := []reflect.Type{
		reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int32](), reflect.TypeFor[uint8](), reflect.TypeFor[float64](),
		reflect.TypeFor[string](), reflect.TypeFor[any](), reflect.TypeFor[time.Time](), reflect.TypeFor[json.RawMessage](),
		reflect.TypeFor[blob](), reflect.TypeFor[tree](), reflect.TypeFor[counts](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[embedded](),
	}
	if depth > 3 {
		return leaves[r.IntN(len(leaves))]
	}
	switch r.IntN(7) {
	case 0:
		return reflect.PointerTo(randomType(r, depth+1))
	case 1:
		return reflect.SliceOf(randomType(r, depth+1))
	case 2:
		return reflect.ArrayOf(r.IntN(3), randomType(r, depth+1))
	case 3:
		keys := []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[uint8](), reflect.TypeFor[shade]()}
		return reflect.MapOf(keys[r.IntN(len(keys))], randomType(r, depth+1))
	case 4, 5:
		var fields []reflect.StructField
		for i := range r.IntN(5) {
			name := string(rune('A' + i))
			of := randomType(r, depth+1)
			tag := []string{name, name + ",omitempty", name + ",omitzero", ",omitempty", name + ",string"}[r.IntN(5)]
			if of.Kind() == reflect.Pointer && of.Elem().Kind() == reflect.Pointer {
				tag = name // "string" has no effect here, but on the schema
			}
			fields = append(fields, reflect.StructField{
				Name: name, Type: of, Tag: reflect.StructTag(fmt.Sprintf(`json:%q`, tag)),
			})
		}
		return reflect.StructOf(fields)
	}
	return leaves[r.IntN(len(leaves))]
}

func requireFit(t *testing.T, of reflect.Type, r *rand.Rand, values int) {
	t.Helper()
	text, err := Of(of)
	require.NoError(t, err, "%s", of)
	if text == nil {
		return
	}
	compiled, err := schema.Compile(text)
	require.NoError(t, err, "%s", text)
	for range values {
		value := reflect.New(of)
		for value.Elem().Kind() == reflect.Pointer && value.Elem().IsNil() { // a payload as a whole is not a nil pointer
			value.Elem().Set(reflect.New(value.Elem().Type().Elem()))
			value = value.Elem()
		}
		fill(r, value.Elem(), 0)
		encoded, err := json.Marshal(value.Interface())
		require.NoError(t, err)
		require.Empty(t, compiled.Check(encoded), "%s\nof %s\nagainst %s", encoded, of, text)
		if err := json.Unmarshal(encoded, reflect.New(of).Interface()); err != nil {
			require.ErrorContains(t, err, "cannot unmarshal", "the test has made a type that does not read what it writes")
		}
	}
}

func TestWhatATypeIsEncodedAsFitsItsSchema(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, of := range []reflect.Type{
		reflect.TypeFor[zoo](), reflect.TypeFor[*zoo](), reflect.TypeFor[mapped](), reflect.TypeFor[listed](), reflect.TypeFor[tree](),
		reflect.TypeFor[shadowed](), reflect.TypeFor[blob](), reflect.TypeFor[map[int]*int](), reflect.TypeFor[[]any](),
		reflect.TypeFor[maybe](), reflect.TypeFor[box[*box[[]byte]]](), reflect.TypeFor[shade](), reflect.TypeFor[hue](),
	} {
		requireFit(t, of, r, 300)
	}
	for range 500 {
		requireFit(t, randomType(r, 0), r, 10)
	}
}

func TestNullIsAllowedWhereGoClientsSendIt(t *testing.T) {
	type args struct {
		Must     string            `json:"must"`
		May      string            `json:"may,omitempty"`
		List     []int             `json:"list"`
		Labels   map[string]string `json:"labels"`
		Nested   point             `json:"nested"`
		MayBe    *point            `json:"mayBe,omitempty"`
		Colour   choice            `json:"colour,omitempty" jsonschema:"enum=red,enum=blue"`
		Children []point           `json:"children,omitempty"`
	}
	text, err := Of(reflect.TypeFor[args]())
	require.NoError(t, err)
	compiled, err := schema.Compile(text)
	require.NoError(t, err)
	const whole = `{"must":"x","list":[],"labels":{},"nested":{"x":1,"y":1}}`
	for change, want := range map[string]string{
		`"may":null`: "", `"list":null`: "", `"labels":null`: "", `"mayBe":null`: "", `"colour":null`: "", `"children":null`: "", `"unknown":null`: "",
		`"must":null`:       "/must: must be a string",
		`"nested":null`:     "/nested: must be an object",
		`"list":[null]`:     "/list/0: must be an integer",
		`"labels":{"a":1}`:  "/labels/a: must be a string",
		`"mayBe":{"x":1}`:   "/mayBe/y: is required",
		`"colour":"black"`:  `/colour: must be one of "red", "blue"`,
		`"children":[null]`: "/children/0: must be an object",
	} {
		found := compiled.Check(json.RawMessage(strings.TrimSuffix(whole, "}") + "," + change + "}"))
		if want == "" {
			require.Empty(t, found, change)
			continue
		}
		require.Len(t, found, 1, change)
		require.Equal(t, want, found[0].Pointer+": "+found[0].Message)
	}
	require.Equal(t, []schema.Violation{{Message: "must be an object"}}, compiled.Check(json.RawMessage("null")))
}

func TestAnAbsentPayloadFitsWhereNothingIsRequired(t *testing.T) {
	for of, fits := range map[reflect.Type]bool{
		reflect.TypeFor[maybe](): false, reflect.TypeFor[struct{}](): true, reflect.TypeFor[map[string]int](): true, reflect.TypeFor[[]int](): true,
		reflect.TypeFor[struct {
			A int `json:"a,omitempty"`
		}](): true,
		reflect.TypeFor[*struct{ *maybe }](): true, reflect.TypeFor[string](): false, reflect.TypeFor[tree](): false,
	} {
		text, err := Of(of)
		require.NoError(t, err)
		compiled, err := schema.Compile(text)
		require.NoError(t, err)
		require.Equal(t, fits, len(compiled.Check(json.RawMessage("null"))) == 0, "%s", of)
	}
}

func TestTagsAreInTheSchema(t *testing.T) {
	type args struct {
		Seconds int      `json:"seconds" jsonschema:"minimum=1,maximum=300,description=How long"`
		Share   float64  `json:"share,omitempty" jsonschema:"exclusiveMinimum=0,exclusiveMaximum=1,multipleOf=0.25"`
		Name    string   `json:"name,omitempty" jsonschema:"minLength=1,maxLength=3,pattern=^[a-z]+$"`
		Mail    string   `json:"mail,omitempty" jsonschema:"format=email"`
		Words   []string `json:"words,omitempty" jsonschema:"minItems=1,maxItems=2,uniqueItems=true,minLength=1"`
		Level   uint8    `json:"level,omitempty" jsonschema:"maximum=7"`
		Needed  string   `json:"needed,omitempty" jsonschema:"required"`
		Pair    string   `json:"pair,omitempty" jsonschema:"pattern=^.{1\\,2}$"`
		Either  any      `json:"either,omitempty" jsonschema:"oneof_type=string;array"`
		Pages   []string `json:"pages,omitempty" jsonschema:"pattern=^[0-9]+$"`
	}
	text, err := Of(reflect.TypeFor[args]())
	require.NoError(t, err)
	require.Contains(t, string(text), `"description":"How long"`)
	compiled, err := schema.Compile(text)
	require.NoError(t, err)
	for payload, want := range map[string]string{
		`{"seconds":0}`: "at least 1", `{"seconds":301}`: "at most 300", `{"share":0}`: "greater than 0", `{"share":1}`: "less than 1", `{"share":0.3}`: "multiple of 0.25",
		`{"name":""}`: "must not be empty", `{"name":"aaaa"}`: "at most 3 characters", `{"name":"A"}`: "pattern ^[a-z]+$", `{"mail":"x"}`: "valid email",
		`{"words":[]}`: "at least 1 item", `{"words":["a","b","c"]}`: "at most 2 items", `{"words":["a","a"]}`: "are equal", `{"words":[""]}`: "must not be empty",
		`{"pair":"abc"}`: "pattern ^.{1,2}$", `{"either":7}`: "a string, an array or null", `{"pages":["1","x"]}`: "pattern ^[0-9]+$",
		`{"level":8}`: "at most 7", `{"level":-1}`: "at least 0", `{}`: "is required",
	} {
		var messages []string
		for _, v := range compiled.Check(json.RawMessage(payload)) {
			messages = append(messages, v.Message)
		}
		require.Contains(t, strings.Join(messages, "\n"), want, payload)
	}
}
