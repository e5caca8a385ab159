package schema

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// structMember is a member of a JSON object as encoding/json maps it to a struct.
type structMember struct {
	of reflect.Type
	// decoded is what decodedAs makes of it.
	decoded reflect.Type
	// absent: the member is missing when a pointer to an embedded struct is nil.
	absent bool
	// shared: several fields have the name, or encoding/json skips the one that
	// has.
	shared bool
	// ignored: encoding/json uses none of the fields with the name.
	ignored bool
}

// membersOf returns the members of a struct, by name.
func membersOf(t reflect.Type) map[string]structMember {
	if known, ok := knownMembers.Load(t); ok {
		return known.(map[string]structMember)
	}
	found := make(map[string][]field)
	walk := walker{found: found, visited: make(map[reflect.Type]bool)}
	for level := []embeddedStruct{{of: t, times: 1}}; len(level) > 0; walk.depth++ {
		level = walk.level(level)
	}
	members := make(map[string]structMember, len(found))
	for name, fields := range found {
		members[name] = resolve(fields)
	}
	known, _ := knownMembers.LoadOrStore(t, members)
	return known.(map[string]structMember)
}

var knownMembers sync.Map // from reflect.Type to map[string]structMember

// field is a field that has a name in JSON.
type field struct {
	of     reflect.Type
	depth  int
	tagged bool
	absent bool
	// hidden: encoding/json skips it.
	hidden bool
}

// resolve decides which of the fields with one name is the member: the one at the
// least depth, or the only one with a tag there.
func resolve(fields []field) structMember {
	rank := func(f field) int {
		r := 2 * f.depth
		if !f.tagged {
			r++
		}
		return r
	}
	shared := len(fields) > 1 || fields[0].hidden
	seen := slices.DeleteFunc(fields, func(f field) bool { return f.hidden })
	slices.SortStableFunc(seen, func(a, b field) int { return cmp.Compare(rank(a), rank(b)) })
	if len(seen) == 0 || len(seen) > 1 && rank(seen[0]) == rank(seen[1]) {
		return structMember{shared: shared, ignored: true}
	}
	return structMember{of: seen[0].of, decoded: decodedAs(seen[0].of), absent: seen[0].absent, shared: shared}
}

// embeddedStruct is a struct whose fields count as those of the struct around it.
type embeddedStruct struct {
	of     reflect.Type
	absent bool
	// times is how often it is embedded at its depth.
	times int
}

// walker finds the fields of a struct and of those embedded in it, level by
// level. A type counts only at its least depth.
type walker struct {
	found   map[string][]field
	visited map[reflect.Type]bool
	depth   int
}

// level finds the fields of structs at one depth, and returns the structs
// embedded in them.
func (w *walker) level(structs []embeddedStruct) (next []embeddedStruct) {
	for _, s := range structs {
		if w.visited[s.of] {
			continue
		}
		w.visited[s.of] = true
		for i := range s.of.NumField() {
			next = w.field(s, s.of.Field(i), next)
		}
	}
	return next
}

func (w *walker) field(s embeddedStruct, f reflect.StructField, next []embeddedStruct) []embeddedStruct {
	tag := f.Tag.Get("json")
	if tag == "-" || !f.IsExported() && !f.Anonymous {
		return next
	}
	inner, isPointer := f.Type, f.Type.Kind() == reflect.Pointer
	if isPointer {
		inner = inner.Elem()
	}
	name, _, _ := strings.Cut(tag, ",")
	if !isName(name) {
		name = ""
	}
	if name == "" && f.Anonymous && inner.Kind() == reflect.Struct {
		for i := range next {
			if next[i].of == inner {
				next[i].times++
				return next
			}
		}
		return append(next, embeddedStruct{of: inner, absent: s.absent || isPointer, times: 1})
	}
	known := field{
		of: f.Type, depth: w.depth, tagged: name != "", absent: s.absent,
		hidden: !f.IsExported() && inner.Kind() != reflect.Struct,
	}
	if name == "" {
		name = f.Name
	}
	for range min(s.times, 2) { // Two of the same depth cancel each other out.
		w.found[name] = append(w.found[name], known)
	}
	return next
}

// isName reports whether encoding/json takes a name from a tag.
func isName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
