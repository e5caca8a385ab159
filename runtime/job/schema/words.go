package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

const (
	// maxForms bounds how many alternatives and causes are worded, maxListed
	// how many values, and maxWords a message as a whole, in characters.
	maxForms  = 5
	maxListed = 20
	maxWords  = 400
)

// wordsFor words what one keyword demands. What it demands is the schema's and
// is told; what it found is the client's and is not.
func wordsFor(found jsonschema.ErrorKind) string {
	switch k := found.(type) {
	case *kind.Const:
		return "must be " + literal(k.Want)
	case *kind.Enum:
		if len(k.Want) == 1 {
			return "must be " + literal(k.Want[0])
		}
		return cut("must be one of " + literals(k.Want))
	case *kind.Format:
		return "must be a valid " + k.Want
	case *kind.Pattern:
		return cut("must match the pattern " + k.Want)
	case *kind.MinLength:
		if k.Want == 1 {
			return "must not be empty"
		}
		return "must have at least " + counted(k.Want, "character")
	case *kind.MaxLength:
		return "must have at most " + counted(k.Want, "character")
	case *kind.MinItems:
		return "must have at least " + counted(k.Want, "item")
	case *kind.MaxItems:
		return "must have at most " + counted(k.Want, "item")
	case *kind.AdditionalItems:
		return "has " + counted(k.Count, "item") + " too many"
	case *kind.MinProperties:
		return "must have at least " + counted(k.Want, "member")
	case *kind.MaxProperties:
		return "must have at most " + counted(k.Want, "member")
	case *kind.UniqueItems:
		return fmt.Sprintf("has the same item at %d and %d", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "must have an item of the form that the schema demands"
	case *kind.MinContains:
		return "must have at least " + counted(k.Want, "item") + " of the form that the schema demands"
	case *kind.MaxContains:
		return "must have at most " + counted(k.Want, "item") + " of the form that the schema limits"
	case *kind.Minimum:
		return "must be at least " + decimal(k.Want)
	case *kind.Maximum:
		return "must be at most " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be greater than " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + decimal(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + decimal(k.Want)
	case *kind.Not:
		return "has a form that the schema excludes"
	case *kind.FalseSchema:
		return "is not allowed"
	}
	return "does not fit the schema"
}

// mustBeOf words a list of types, such as "must be a string or null".
func mustBeOf(types []string) string {
	var words []string
	for _, t := range types {
		switch t {
		case "null":
		case "array", "integer", "object":
			t = "an " + t
		default:
			t = "a " + t
		}
		if !slices.Contains(words, t) {
			words = append(words, t)
		}
	}
	if i := slices.Index(words, "null"); i >= 0 {
		words = append(slices.Delete(words, i, i+1), "null")
	}
	return "must be " + enumerate(words, "or")
}

func enumerate(words []string, conjunction string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " " + conjunction + " " + words[last]
}

// wordsOf words several findings about one value.
func wordsOf(causes []*jsonschema.ValidationError) string {
	var f findings
	for _, cause := range causes {
		f.collect(cause)
	}
	f.sort()
	var words []string
	for _, found := range f.found[:min(len(f.found), maxForms)] {
		words = append(words, found.message)
	}
	return cut(enumerate(words, "and"))
}

// wordsOfForms words what keeps the value at the depth from having any of
// several forms.
func wordsOfForms(refused []*jsonschema.ValidationError, depth int) string {
	var forms []string
	for _, cause := range refused {
		var f findings
		f.collect(cause)
		f.sort()
		var words []string
		for _, found := range f.found[:min(len(f.found), maxForms)] {
			place := strings.TrimPrefix(pointer(found.path[depth:]), "/")
			words = append(words, strings.TrimSpace(short(place)+" "+found.message))
		}
		form := enumerate(words, "and")
		if !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	if len(forms) > maxForms {
		forms = append(forms[:maxForms], "…")
	}
	return cut(strings.Join(forms, "; or "))
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func literals(values []any) string {
	var words []string
	for _, value := range values[:min(len(values), maxListed)] {
		words = append(words, literal(value))
	}
	if len(values) > maxListed {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}

func literal(value any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return "another value"
	}
	return short(strings.TrimSuffix(text.String(), "\n"))
}

// decimal writes a number that came from a decimal fraction, to the letter
// unless it is very long.
func decimal(n *big.Rat) string {
	digits, exact := n.FloatPrec()
	if text := n.FloatString(digits); exact && len(text) <= 40 {
		return text
	}
	rounded, _ := n.Float64()
	return fmt.Sprintf("about %g", rounded)
}

// short keeps a part of a message from filling it.
func short(text string) string { return cutAt(text, maxWords/4) }

func cut(text string) string { return cutAt(text, maxWords) }

func cutAt(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
