package schema

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// MaxViolations bounds how many violations are reported.
const MaxViolations = 20

// Violation is one thing that is wrong with a payload.
type Violation struct {
	// Pointer is the place, a JSON Pointer (RFC 6901) into the payload: empty
	// for the payload as a whole.
	Pointer string
	// Message says what is wrong with the value there, such as "must be a
	// string". It never repeats a value that was sent.
	Message string
}

// finding is a violation before its place is written as a pointer.
type finding struct {
	path    []string
	message string
}

// findings is what is wrong with a value.
type findings struct {
	found []finding
	// wrongType is set if the value itself is of a wrong type.
	wrongType bool
	// endless is set if the schema refers to itself without a step into the value.
	endless bool
	// ofSchema is set if the value is a schema, which has no secrets.
	ofSchema bool
}

// keepAtMost bounds how many findings are kept before they are sorted.
const keepAtMost = 1000

func (f *findings) add(path []string, message string) {
	if len(f.found) == keepAtMost {
		f.sort()
	}
	f.found = append(f.found, finding{path: path, message: cut(message, maxWords)})
}

func (f *findings) addMembers(path, names []string, message string) {
	for _, name := range names {
		f.add(append(slices.Clone(path), name), message)
	}
}

// sort orders the findings by their places, and drops duplicates and those that will
// not be reported.
func (f *findings) sort() {
	slices.SortFunc(f.found, func(a, b finding) int {
		return cmp.Or(slices.CompareFunc(a.path, b.path, compareSteps), cmp.Compare(a.message, b.message))
	})
	f.found = slices.CompactFunc(f.found, func(a, b finding) bool {
		return a.message == b.message && slices.Equal(a.path, b.path)
	})
	f.found = f.found[:min(len(f.found), MaxViolations)]
}

func compareSteps(a, b string) int {
	m, errA := strconv.Atoi(a)
	n, errB := strconv.Atoi(b)
	if errA == nil && errB == nil {
		return cmp.Or(cmp.Compare(m, n), cmp.Compare(a, b))
	}
	return cmp.Compare(a, b)
}

func (f findings) violations() []Violation {
	f.sort()
	var all []Violation
	for _, found := range f.found {
		all = append(all, Violation{Pointer: pointer(found.path), Message: found.message})
	}
	return all
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

func pointer(path []string) string {
	var text strings.Builder
	for _, step := range path {
		text.WriteByte('/')
		_, _ = escape.WriteString(&text, step)
	}
	return text.String()
}

// collect finds the leaves of the library's report: the keywords that refuse a value by
// themselves.
func (f *findings) collect(refused *jsonschema.ValidationError) {
	path := refused.InstanceLocation
	switch k := refused.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		for _, cause := range refused.Causes {
			f.collect(cause)
		}
	case *kind.AnyOf:
		f.collectAlternatives(refused)
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			f.collectAlternatives(refused)
			return
		}
		f.add(path, wordsFor(k))
	case *kind.Required:
		f.addMembers(path, k.Missing, "is required")
	case *kind.Dependency:
		f.addMembers(path, k.Missing, "is required")
	case *kind.DependentRequired:
		f.addMembers(path, k.Missing, "is required")
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
		f.addMembers(path, k.Properties[:min(len(k.Properties), MaxViolations)], "is not known")
	case *kind.PropertyNames:
		f.addMembers(path, []string{k.Property}, "has a name that "+f.words(refused.Causes, math.MaxInt))
	case *kind.Type:
		f.wrongType = f.wrongType || len(path) == 0
		f.add(path, mustBeOf(k.Want))
	case *kind.Format:
		message := wordsFor(k)
		if f.ofSchema { // such as why a pattern does not compile
			message += ": " + k.Err.Error()
		}
		f.add(path, message)
	case *kind.RefCycle:
		f.endless = true
		f.add(path, "cannot be checked: the schema refers to itself without end")
	default:
		f.add(path, wordsFor(k))
	}
}

// collectAlternatives takes several schemas of which none fits. If one of them must have
// been meant, only its findings count.
func (f *findings) collectAlternatives(refused *jsonschema.ValidationError) {
	path := refused.InstanceLocation
	var types []string
	meant := slices.DeleteFunc(slices.Clone(refused.Causes), func(cause *jsonschema.ValidationError) bool {
		want := wantedTypes(cause, len(path))
		types = append(types, want...)
		return want != nil
	})
	ofKind := slices.DeleteFunc(slices.Clone(meant), func(cause *jsonschema.ValidationError) bool {
		return isOfAnotherKind(cause, len(path))
	})
	switch {
	case len(meant) == 0:
		f.wrongType = f.wrongType || len(path) == 0
		f.add(path, mustBeOf(types))
	case len(meant) == 1:
		f.collect(meant[0])
	case len(ofKind) == 1:
		f.collect(ofKind[0])
	default:
		f.add(path, "fits none of the forms that are allowed: "+f.wordsOfForms(meant, len(path)))
	}
}

// wantedTypes returns the types that a schema wants of the value at the depth,
// if the value has none of them.
func wantedTypes(refused *jsonschema.ValidationError, depth int) []string {
	if len(refused.InstanceLocation) != depth {
		return nil
	}
	switch k := refused.ErrorKind.(type) {
	case *kind.Type:
		return k.Want
	case *kind.Group, *kind.AllOf, *kind.Reference:
		for _, cause := range refused.Causes {
			if want := wantedTypes(cause, depth); want != nil {
				return want
			}
		}
	case *kind.AnyOf, *kind.OneOf:
		var all []string
		for _, cause := range refused.Causes {
			want := wantedTypes(cause, depth)
			if want == nil {
				return nil
			}
			all = append(all, want...)
		}
		return all
	}
	return nil
}

// isOfAnotherKind reports whether a member of the value at the depth, such as
// its "kind", has a value that the schema does not allow.
func isOfAnotherKind(refused *jsonschema.ValidationError, depth int) bool {
	switch refused.ErrorKind.(type) {
	case *kind.Const, *kind.Enum:
		return len(refused.InstanceLocation) == depth+1
	case *kind.Group, *kind.AllOf, *kind.Reference:
		return slices.ContainsFunc(refused.Causes, func(cause *jsonschema.ValidationError) bool {
			return isOfAnotherKind(cause, depth)
		})
	}
	return false
}
