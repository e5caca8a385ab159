package schemaform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func (f *Form) build(from *node) *Form {
	if f.root == nil {
		f.root = &schema{}
	}
	f.Root = f.field(f.root, from, nil, true, 0)
	return f
}

// field is that of a value, which is nil or not sent if there is none.
func (f *Form) field(s *schema, from *node, at path, required bool, level int) *Field {
	s = s.resolved(f.root)
	f.fields++
	made := &Field{ID: "f" + strconv.Itoa(f.fields), Required: required, Kind: s.kind(), place: at.place()}
	made.describe(s)
	if level >= levels || f.fields > maxFields {
		if made.IsGroup() {
			made.Kind = asJSON
		}
	}
	if from.isSent() && !fits(made.Kind, s, from) {
		made.Kind = asJSON
	}
	switch made.Kind {
	case asObject:
		f.object(made, s, from, at, level)
	case asArray:
		f.array(made, s, from, at, level)
	case asChoice, asBoolean:
		made.choose(s, from)
	default:
		made.write(from)
	}
	if made.Name == "" && !made.IsGroup() {
		made.Name = at.field(made.Kind)
	}
	return made
}

// describe says what is known about a value.
func (f *Field) describe(s *schema) {
	if len(f.place) > 0 {
		f.Label = f.place[len(f.place)-1]
	}
	if s == nil {
		return
	}
	for _, text := range []string{s.Title, s.Description} {
		if text != "" {
			f.Help = append(f.Help, text)
		}
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		f.Help = append(f.Help, fmt.Sprintf("From %s to %s.", *s.Minimum, *s.Maximum))
	case s.Minimum != nil:
		f.Help = append(f.Help, fmt.Sprintf("At least %s.", *s.Minimum))
	case s.Maximum != nil:
		f.Help = append(f.Help, fmt.Sprintf("At most %s.", *s.Maximum))
	}
	if s.Format != "" {
		f.Help = append(f.Help, "Format: "+s.Format+".")
	}
	if s.Default != nil {
		f.Help = append(f.Help, "Default: "+string(s.Default)+".")
	}
	if f.Kind == asNumber {
		if f.Numeric = "decimal"; slices.Contains(s.Type, "integer") {
			f.Numeric = "numeric"
		}
	}
	if f.Kind == asText && s.MaxLength != nil {
		longest, err := s.MaxLength.Int64()
		f.Long = err == nil && longest > 1000
	}
}

// fits reports whether a value can be edited in a field of this kind, without a change.
func fits(k Kind, s *schema, from *node) bool {
	if from.kind != fromJSON {
		// It was sent, as this kind or as JSON instead.
		return from.kind == k || from.kind == 0 || k == asObject && from.kind == asJSON && from.members != nil
	}
	switch k {
	case asObject:
		return from.members != nil
	case asArray:
		return from.isArray && len(from.items) <= maxItems
	case asText:
		text, isText := plainText(from.text)
		return isText && text != ""
	case asNumber:
		return isNumber(from.text)
	case asBoolean:
		return from.text == "true" || from.text == "false"
	case asChoice:
		return slices.ContainsFunc(s.choices(), func(one json.RawMessage) bool { return equal(one, from.text) })
	default:
		return true
	}
}

// plainText is a JSON text as a field keeps it; false if a browser would change it.
func plainText(literal string) (text string, isPlain bool) {
	if !strings.HasPrefix(literal, `"`) || json.Unmarshal([]byte(literal), &text) != nil {
		return "", false
	}
	for _, r := range text {
		if r == utf8.RuneError || unicode.IsControl(r) && r != '\n' && r != '\t' {
			return "", false
		}
	}
	return text, true
}

func (s *schema) choices() []json.RawMessage {
	if s.Const != nil {
		return []json.RawMessage{s.Const}
	}
	return s.Enum
}

// equal compares JSON values.
func equal(a json.RawMessage, b string) bool {
	var left, right bytes.Buffer
	return json.Compact(&left, a) == nil && json.Compact(&right, []byte(b)) == nil && left.String() == right.String()
}

// write fills in a field with a text.
func (f *Field) write(from *node) {
	if !from.isSent() {
		return
	}
	f.Text = from.text
	if from.kind == fromJSON {
		if f.Text = indented(json.RawMessage(from.text)); f.Kind == asText {
			f.Text, _ = plainText(from.text)
		}
	}
	f.Long = f.Long || f.Kind == asText && (strings.Contains(f.Text, "\n") || utf8.RuneCountInString(f.Text) > longText)
}

// choose fills in a choice.
func (f *Field) choose(s *schema, from *node) {
	f.Options = []Option{{Label: "(left out)", Chosen: !from.isSent()}}
	choices := []json.RawMessage{json.RawMessage("true"), json.RawMessage("false")}
	if f.Kind == asChoice {
		choices = s.choices()
	}
	for _, one := range choices {
		option := Option{Value: string(one), Label: string(one)}
		if text, isPlain := plainText(string(one)); isPlain && text != "" {
			option.Label = text
		}
		option.Chosen = from.isSent() && equal(one, from.text)
		f.Options = append(f.Options, option)
	}
}

func (f *Form) object(made *Field, s *schema, from *node, at path, level int) {
	made.mark(from, at, level, markObject, weakObject)
	for _, name := range s.Properties.names {
		var member *node
		if from != nil {
			member = from.members[name]
		}
		made.Fields = append(made.Fields, f.field(s.Properties.of[name], member, at.member(name), slices.Contains(s.Required, name), level+1))
	}
	if others := otherMembers(s, from); others != "" {
		f.fields++
		made.Fields = append(made.Fields, &Field{
			Name: at.field(asJSON), ID: "f" + strconv.Itoa(f.fields), Kind: asJSON, Text: others, Label: "Other members", place: at.place(),
			Help: []string{"A JSON object with members that the schema does not name."},
		})
	}
}

// otherMembers are those that a schema does not name, as JSON; empty for none.
func otherMembers(s *schema, from *node) string {
	if from == nil || from.kind == asJSON {
		if from == nil {
			return ""
		}
		return from.text
	}
	others := []byte{}
	for _, name := range from.names {
		if _, named := s.Properties.of[name]; !named {
			others = append(append(append(others, ','), quoted(name)...), ':')
			others = append(others, from.members[name].text...)
		}
	}
	if len(others) == 0 {
		return ""
	}
	return indented(brackets('{', others, '}'))
}

func (f *Form) array(made *Field, s *schema, from *node, at path, level int) {
	made.mark(from, at, level, markArray, weakArray)
	var items []*node
	if from != nil {
		items = from.sentItems()
	}
	items = append(items, nil) // to fill in
	if made.More = at.field(asArray); f.more == made.More {
		items = append(items, make([]*node, moreItems)...)
	}
	for i, item := range items {
		one := f.field(s.Items, item, at.item(i), false, level+1)
		one.Label = strconv.Itoa(i + 1)
		made.Fields = append(made.Fields, one)
	}
}

// mark says when an empty object or array is sent.
func (f *Field) mark(from *node, at path, level int, strong, weak Kind) {
	switch {
	case level == 0:
		f.Mark, f.MarkHidden = at.field(strong), true
	case f.Required && !at[len(at)-1].isItem:
		f.Mark, f.MarkHidden = at.field(weak), true
	default:
		f.Mark = at.field(strong)
		f.Marked = from.isSent() && (from.marked || from.kind == fromJSON && !from.hasWithin())
	}
}

func (n *node) hasWithin() bool { return len(n.members)+len(n.items) > 0 }

// indented is JSON for people, to the letter but for space.
func indented(value json.RawMessage) string {
	out := &bytes.Buffer{}
	if json.Indent(out, value, "", "  ") != nil {
		return string(value)
	}
	return out.String()
}
