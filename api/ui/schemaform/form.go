// Package schemaform makes a form of a JSON Schema, and JSON of what the form has sent. It works
// without scripts: every field says in its name where its value is, and how to read it.
//
// Texts, numbers (to the letter), booleans, choices, and objects and arrays a few levels deep have
// fields of their own. Everything else is a field with JSON in it; so is a value that does not fit
// its field, such as a number where the schema wants a text, or an empty text. An empty field is
// left out. The whole can be edited as JSON, too.
package schemaform

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// Kind is how a value is edited.
type Kind byte

// The kinds. Marks are no fields: they say that an object or array is sent even if it is empty, or
// (weak ones) if what has it is sent.
const (
	asText    Kind = 's'
	asNumber  Kind = 'n'
	asBoolean Kind = 'b'
	asChoice  Kind = 'e'
	asJSON    Kind = 'j'
	asObject  Kind = 'O'
	asArray   Kind = 'A'

	markObject Kind = 'o'
	markArray  Kind = 'a'
	weakObject Kind = 'p'
	weakArray  Kind = 'q'

	fromJSON Kind = 'v'
	kinds         = "snbejoapq"
)

const (
	// levels is how deep objects and arrays have fields.
	levels = 4
	// maxItems and maxFields bound forms: what is larger is edited as JSON.
	maxItems  = 100
	maxFields = 1000
	// moreItems is how many empty fields the button for more items adds.
	moreItems = 3
	// longText is how many characters have more than one line.
	longText = 120
)

// The names of inputs beside the fields.
const (
	// RawField has the whole as JSON, if Raw.
	RawField = "json"
	// EditField is that of buttons that show the form again: EditJSON, EditForm, or the name
	// of an array that gets another item.
	EditField = "edit"
	EditJSON  = "json"
	EditForm  = "form"
)

// Form is a form to show.
type Form struct {
	// Root is the value: usually an object.
	Root *Field
	// Raw says that the whole is edited as JSON, which is Text.
	Raw  bool
	Text string
	// Base is the place of the value in what is sent, such as payload.
	Base []string
	// Mistakes are those of the value that no field has.
	Mistakes []string

	root   *schema
	fields int
	more   string
}

// Field is one value.
type Field struct {
	// Name is that of the input, ID that of the element.
	Name, ID string
	Label    string
	Help     []string
	Required bool
	Kind     Kind
	Text     string
	// Long says that a text needs several lines.
	Long bool
	// Numeric is the keyboard to offer for a number.
	Numeric string
	Options []Option
	// Fields are those of an object or an array.
	Fields []*Field
	// Mark is the name of an input that says that an empty object or array is sent.
	Mark string
	// MarkHidden says that this is not the user's choice, Marked that it is so.
	MarkHidden, Marked bool
	// More is the value of a button that adds an item; empty for none.
	More    string
	Mistake string

	place []string
}

// Option is one of a choice.
type Option struct {
	// Value is JSON, or empty to leave the value out.
	Value, Label string
	Chosen       bool
}

// IsGroup reports whether the field has others within.
func (f *Field) IsGroup() bool { return f.Kind == asObject || f.Kind == asArray }

// IsChoice reports whether it is a list to choose from.
func (f *Field) IsChoice() bool { return f.Kind == asChoice || f.Kind == asBoolean }

// IsJSON reports whether it is edited as JSON.
func (f *Field) IsJSON() bool { return f.Kind == asJSON }

// Of is the form for a value; nil for none. A schema that is missing allows everything.
func Of(schema, value json.RawMessage, base ...string) *Form {
	f := &Form{root: readSchema(schema), Base: base}
	from := &node{}
	if len(value) > 0 {
		from, f.Text = readJSON(value, 0), indented(value)
	}
	return f.build(from)
}

// Sent is the form as the user has sent it, after a button of EditField or with mistakes.
func Sent(schema json.RawMessage, sent url.Values, base ...string) *Form {
	f := &Form{root: readSchema(schema), Base: base}
	edit := sent.Get(EditField)
	if isRaw(sent) {
		f.Text = sent.Get(RawField)
		if edit != EditForm || checkJSON(f.Text) != nil {
			f.Raw = true
			return f
		}
		return f.build(readJSON(json.RawMessage(f.Text), 0))
	}
	from := readSent(sent)
	if edit == EditJSON {
		value, mistakes := Value(sent)
		if f.Text = indented(value); len(mistakes) == 0 {
			f.Raw = true
			return f
		}
		f.build(from).Mark(under(base, mistakes))
		return f
	}
	f.more = edit
	return f.build(from)
}

// Value is what a form has sent. Mistakes are in what cannot be sent at all; their places are
// those within the value.
func Value(sent url.Values) (json.RawMessage, []v1.Mistake) {
	if isRaw(sent) {
		text := sent.Get(RawField)
		if err := checkJSON(text); err != nil {
			return nil, []v1.Mistake{{Location: "#", Message: "is not JSON: " + err.Error()}}
		}
		return json.RawMessage(text), nil
	}
	root := readSent(sent)
	if !root.isSent() {
		return nil, nil
	}
	var mistakes []v1.Mistake
	value := root.encode(nil, &mistakes)
	return value, mistakes
}

func isRaw(sent url.Values) bool { return sent.Has(RawField) }

func under(base []string, mistakes []v1.Mistake) []v1.Mistake {
	moved := slices.Clone(mistakes)
	for i := range moved {
		place, _ := placeOf(moved[i].Location)
		moved[i].Location = pointer(append(slices.Clone(base), place...))
	}
	return moved
}

// Under moves the mistakes of Value to where the value is in what is sent.
func (f *Form) Under(mistakes []v1.Mistake) []v1.Mistake { return under(f.Base, mistakes) }

// Mark shows mistakes at their fields, or at the nearest around them. It ignores those that are
// elsewhere.
func (f *Form) Mark(mistakes []v1.Mistake) {
	for _, mistake := range mistakes {
		place, isPointer := placeOf(mistake.Location)
		if !isPointer || len(place) < len(f.Base) || !slices.Equal(place[:len(f.Base)], f.Base) {
			continue
		}
		place = place[len(f.Base):]
		if found := f.Root.nearest(place); found != nil {
			text := mistake.Message
			if rest := place[len(found.place):]; len(rest) > 0 {
				text = strings.Join(rest, "/") + ": " + text
			}
			found.Mistake = strings.TrimPrefix(found.Mistake+"; "+text, "; ")
			continue
		}
		f.Mistakes = append(f.Mistakes, strings.TrimPrefix(strings.Join(place, "/")+": "+mistake.Message, ": "))
	}
}

// nearest is the innermost field around a place; nil for none.
func (f *Field) nearest(place []string) *Field {
	if f == nil || len(place) < len(f.place) || !slices.Equal(place[:len(f.place)], f.place) {
		return nil
	}
	for _, within := range f.Fields {
		// The field of other members is at the place of its object.
		if found := within.nearest(place); found != nil && len(found.place) > len(f.place) {
			return found
		}
	}
	return f
}
