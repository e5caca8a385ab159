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
	members := make(map[string]structMember)
	for name, fields := range fieldsOf(t) {
		members[name] = resolve(fields)
	}
	known, _ := knownMembers.LoadOrStore(t, members)
	return known.(map[string]structMember)
}

var knownMembers sync.Map // from reflect.Type to map[string]structMember

// field is a field that has a name in JSON.
type field struct {
	of reflect.Type
	// rank decides between fields with the same name: the lowest wins. A field that is
	// embedded less deeply ranks lower, and at the same depth one with a tag does.
	rank   int
	absent bool
	// hidden: encoding/json skips it.
	hidden bool
}

// resolve decides which of the fields with one name is the member: the only one of
// the lowest rank.
func resolve(fields []field) structMember {
	shared := len(fields) > 1 || fields[0].hidden
	seen := slices.DeleteFunc(fields, func(f field) bool { return f.hidden })
	slices.SortStableFunc(seen, func(a, b field) int { return cmp.Compare(a.rank, b.rank) })
	if len(seen) == 0 || len(seen) > 1 && seen[0].rank == seen[1].rank {
		return structMember{shared: shared, ignored: true}
	}
	return structMember{of: seen[0].of, decoded: decodedAs(seen[0].of), absent: seen[0].absent, shared: shared}
}

// fieldsOf finds the fields of a struct and of those embedded in it, by name. As in
// encoding/json, a type that is embedded at several depths counts only at the least of
// them. If it is embedded there several times, its fields cancel each other out, but
// what is embedded in it counts once.
func fieldsOf(t reflect.Type) map[string][]field {
	type embedded struct {
		of     reflect.Type
		absent bool
	}
	found := make(map[string][]field)
	depthOf := make(map[reflect.Type]int)
	level := []embedded{{of: t}}
	for depth := 0; len(level) > 0; depth++ {
		var next []embedded
		for _, s := range level {
			at, again := depthOf[s.of]
			if again && at < depth {
				continue
			}
			depthOf[s.of] = depth
			for f := range s.of.Fields() {
				name, tagged := jsonName(f)
				inner, isPointer := f.Type, f.Type.Kind() == reflect.Pointer
				if isPointer {
					inner = inner.Elem()
				}
				isStruct := inner.Kind() == reflect.Struct
				switch {
				case name == "":
				case tagged || !f.Anonymous || !isStruct:
					rank := 2 * depth
					if !tagged {
						rank++
					}
					found[name] = append(found[name], field{of: f.Type, rank: rank, absent: s.absent, hidden: !f.IsExported() && !isStruct})
				case !again:
					next = append(next, embedded{of: inner, absent: s.absent || isPointer})
				}
			}
		}
		level = next
	}
	return found
}

// jsonName returns a field's name in JSON and whether a tag gives it; "" if it has
// none.
func jsonName(f reflect.StructField) (name string, tagged bool) {
	tag := f.Tag.Get("json")
	if tag == "-" || !f.IsExported() && !f.Anonymous {
		return "", false
	}
	if name, _, _ := strings.Cut(tag, ","); isName(name) {
		return name, true
	}
	return f.Name, false
}

// isName reports whether encoding/json takes a name from a tag.
func isName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
