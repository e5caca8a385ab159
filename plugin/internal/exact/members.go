package exact

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Member is a member of a JSON object as encoding/json sees it in a struct.
type Member struct {
	Of reflect.Type
	// Absent says that it is missing when a pointer to an embedded struct is
	// nil.
	Absent bool
	// Shared says that more than one field has its name, or one that
	// encoding/json passes over.
	Shared bool
	// Ignored says that encoding/json sees none of the fields of the name.
	Ignored bool
}

// Members returns the members of a struct, by name.
func Members(t reflect.Type) map[string]Member {
	if known, ok := membersOf.Load(t); ok {
		return known.(map[string]Member)
	}
	found := make(map[string][]field)
	walk := walker{found: found, visited: make(map[reflect.Type]bool)}
	for level := []embedded{{of: t, times: 1}}; len(level) > 0; walk.depth++ {
		level = walk.level(level)
	}
	members := make(map[string]Member, len(found))
	for name, fields := range found {
		members[name] = settle(fields)
	}
	known, _ := membersOf.LoadOrStore(t, members)
	return known.(map[string]Member)
}

var membersOf sync.Map // from reflect.Type to map[string]Member

// field is a field that has a name in JSON.
type field struct {
	of     reflect.Type
	depth  int
	tagged bool
	absent bool
	// hidden says that encoding/json passes it over.
	hidden bool
}

// settle finds out which of the fields with a name has it: that at the least
// depth, and there the one whose tag says so, if it is the only one.
func settle(fields []field) Member {
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
		return Member{Shared: shared, Ignored: true}
	}
	return Member{Of: seen[0].of, Absent: seen[0].absent, Shared: shared}
}

// embedded is a struct whose fields count as those of the struct around it.
type embedded struct {
	of     reflect.Type
	absent bool
	// times is how often it is embedded at its depth.
	times int
}

// walker finds the fields of a struct, and of those embedded in it, level by
// level: a type counts only where it is embedded least deep.
type walker struct {
	found   map[string][]field
	visited map[reflect.Type]bool
	depth   int
}

// level finds the fields of structs at one depth, and returns the structs
// embedded in them.
func (w *walker) level(structs []embedded) (next []embedded) {
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

func (w *walker) field(s embedded, f reflect.StructField, next []embedded) []embedded {
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
		return append(next, embedded{of: inner, absent: s.absent || isPointer, times: 1})
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
