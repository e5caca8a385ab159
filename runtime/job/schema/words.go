package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

const (
	// maxForms bounds how many alternatives and causes a message has, maxListed how many
	// values, maxWords its length and maxPart that of a value or place in it, in characters.
	maxForms  = 5
	maxListed = 20
	maxWords  = 400
	maxPart   = 100
)

var library = message.NewPrinter(language.English)

// wordsFor says what one keyword demands. What it demands is the schema's and is shown;
// what it found is the client's and is not. The library's own messages serve unless they
// show the client's value or leave out what would be right. The others are worded as the
// API words its own.
func wordsFor(found jsonschema.ErrorKind) string {
	switch k := found.(type) {
	case *kind.Enum:
		return mustBeAmong(k.Want)
	case *kind.Const:
		return mustBeAmong([]any{k.Want})
	case *kind.Format:
		return "must be a valid " + k.Want
	case *kind.Pattern:
		return "must match the pattern " + k.Want
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
	case *kind.MinProperties:
		return "must have at least " + counted(k.Want, "member")
	case *kind.MaxProperties:
		return "must have at most " + counted(k.Want, "member")
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
	return found.LocalizedString(library)
}

// mustBeOf is about the types that are allowed, such as "must be a string or null".
func mustBeOf(types []string) string {
	var words []string
	null := false
	for _, t := range types {
		word := "a " + t
		if t == "array" || t == "integer" || t == "object" {
			word = "an " + t
		}
		if t == "null" {
			null = true
		} else if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	if null {
		words = append(words, "null")
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

// words says in one line what is wrong with a value. Places are relative to the depth.
func (f *findings) words(causes []*jsonschema.ValidationError, depth int) string {
	inner := findings{ofSchema: f.ofSchema}
	for _, cause := range causes {
		inner.collect(cause)
	}
	inner.sort()
	var words []string
	for _, found := range inner.found[:min(len(inner.found), maxForms)] {
		place := strings.TrimPrefix(pointer(found.path[min(depth, len(found.path)):]), "/")
		words = append(words, strings.TrimSpace(cut(place, maxPart)+" "+found.message))
	}
	return enumerate(words, "and")
}

// wordsOfForms says, for each form that a schema allows, why the value at that depth
// does not have it.
func (f *findings) wordsOfForms(refused []*jsonschema.ValidationError, depth int) string {
	var forms []string
	for _, cause := range refused {
		form := f.words([]*jsonschema.ValidationError{cause}, depth)
		if slices.Contains(forms, form) {
			continue
		}
		if len(forms) == maxForms {
			forms = append(forms, "…")
			break
		}
		forms = append(forms, form)
	}
	return strings.Join(forms, "; or ")
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func mustBeAmong(values []any) string {
	if len(values) == 1 {
		return "must be " + literal(values[0])
	}
	var words []string
	for _, value := range values[:min(len(values), maxListed)] {
		words = append(words, literal(value))
	}
	if len(values) > maxListed {
		words = append(words, "…")
	}
	return "must be one of " + strings.Join(words, ", ")
}

func literal(value any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return "another value"
	}
	return cut(strings.TrimSuffix(text.String(), "\n"), maxPart)
}

// decimal writes a number that came from a decimal fraction, exactly unless it is very
// long.
func decimal(n *big.Rat) string {
	digits, exact := n.FloatPrec()
	if text := n.FloatString(digits); exact && len(text) <= 40 {
		return text
	}
	rounded, _ := n.Float64()
	return fmt.Sprintf("about %g", rounded)
}

func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
