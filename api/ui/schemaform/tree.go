package schemaform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// maxDepth bounds the names of fields. No form comes near it.
const maxDepth = 16

// step leads from a value to one within it: a member, or an item.
type step struct {
	name   string
	index  int
	isItem bool
}

type path []step

var (
	escapeName   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapeName = strings.NewReplacer("~1", "/", "~0", "~")
)

// field is the name of an input: its kind, and where its value is.
func (p path) field(k Kind) string {
	text := &strings.Builder{}
	text.WriteByte(byte(k))
	text.WriteByte(':')
	for _, s := range p {
		if s.isItem {
			fmt.Fprintf(text, "/i%d", s.index)
		} else {
			text.WriteString("/m" + escapeName.Replace(s.name))
		}
	}
	return text.String()
}

// place is the JSON Pointer, in parts.
func (p path) place() []string {
	parts := make([]string, len(p))
	for i, s := range p {
		if parts[i] = s.name; s.isItem {
			parts[i] = strconv.Itoa(s.index)
		}
	}
	return parts
}

func (p path) member(name string) path { return append(slices.Clip(p), step{name: name}) }
func (p path) item(index int) path     { return append(slices.Clip(p), step{index: index, isItem: true}) }

// readField reads the name of an input; false for inputs that are not of a schema's form.
func readField(name string) (k Kind, p path, isOurs bool) {
	if len(name) < 2 || name[1] != ':' || !strings.ContainsRune(kinds, rune(name[0])) {
		return 0, nil, false
	}
	if name[2:] == "" {
		return Kind(name[0]), nil, true
	}
	parts := strings.Split(name[2:], "/")
	if parts[0] != "" || len(parts)-1 > maxDepth {
		return 0, nil, false
	}
	for _, part := range parts[1:] {
		switch {
		case strings.HasPrefix(part, "m"):
			p = append(p, step{name: unescapeName.Replace(part[1:])})
		case strings.HasPrefix(part, "i"):
			index, err := strconv.Atoi(part[1:])
			if err != nil || index < 0 {
				return 0, nil, false
			}
			p = append(p, step{index: index, isItem: true})
		default:
			return 0, nil, false
		}
	}
	return Kind(name[0]), p, true
}

// node is a value: from JSON, or from the fields that were sent.
type node struct {
	// kind is how a scalar was sent, with its text; fromJSON for JSON, and 0 for one that
	// was not sent.
	kind Kind
	text string
	// members and items are what it consists of.
	members map[string]*node
	names   []string
	items   map[int]*node
	// marked says that it is sent even if it is empty; weakly, that it is sent if what has it is.
	marked, weakly bool
	isArray        bool
}

// readJSON takes a value apart. Numbers and texts stay to the letter.
func readJSON(text json.RawMessage, depth int) *node {
	text = bytes.TrimSpace(text)
	n := &node{kind: fromJSON, text: string(text)}
	switch {
	case depth > maxDepth || len(text) == 0:
	case text[0] == '{':
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) != nil {
			return n
		}
		n.members, n.names = map[string]*node{}, memberNames(text)
		for name, value := range members {
			n.members[name] = readJSON(value, depth+1)
		}
	case text[0] == '[':
		var items []json.RawMessage
		if json.Unmarshal(text, &items) != nil {
			return n
		}
		n.isArray, n.items = true, map[int]*node{}
		for i, value := range items {
			n.items[i] = readJSON(value, depth+1)
		}
	}
	return n
}

// readSent makes a tree of the fields that were sent.
func readSent(values url.Values) *node {
	root := &node{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		k, p, isOurs := readField(name)
		if !isOurs {
			continue
		}
		text := strings.ReplaceAll(values.Get(name), "\r\n", "\n")
		marks := k == markObject || k == markArray || k == weakObject || k == weakArray
		if text == "" && !marks {
			continue
		}
		n := root
		for _, s := range p {
			n = n.child(s)
		}
		switch k {
		case markObject, markArray:
			n.marked, n.isArray = true, k == markArray
		case weakObject, weakArray:
			n.weakly, n.isArray = true, k == weakArray
		default:
			n.kind, n.text = k, text
		}
	}
	return root
}

// child returns a value within, and makes it if it is not there.
func (n *node) child(s step) *node {
	if s.isItem {
		if n.isArray = true; n.items == nil {
			n.items = map[int]*node{}
		}
		if n.items[s.index] == nil {
			n.items[s.index] = &node{}
		}
		return n.items[s.index]
	}
	if n.members == nil {
		n.members = map[string]*node{}
	}
	if n.members[s.name] == nil {
		n.members[s.name] = &node{}
	}
	return n.members[s.name]
}

// isSent reports whether the value is there at all.
func (n *node) isSent() bool {
	if n == nil {
		return false
	}
	if n.kind != 0 || n.marked {
		return true
	}
	for _, within := range n.members {
		if within.isSent() {
			return true
		}
	}
	for _, within := range n.items {
		if within.isSent() {
			return true
		}
	}
	return false
}

// sentItems are the items that were sent, in their order.
func (n *node) sentItems() (sent []*node) {
	for _, index := range slices.Sorted(maps.Keys(n.items)) {
		if n.items[index].isSent() {
			sent = append(sent, n.items[index])
		}
	}
	return sent
}

// encode writes what was sent as JSON. Items that were not sent are left out, so those after them
// move up: the places of mistakes, and of the form that shows them, count as sent.
func (n *node) encode(p path, mistakes *[]v1.Mistake) json.RawMessage {
	wrong := func(message string) json.RawMessage {
		*mistakes = append(*mistakes, v1.Mistake{Location: pointer(p.place()), Message: message})
		return json.RawMessage("null")
	}
	if n.members == nil && n.items == nil && n.kind != 0 {
		return encodeText(n.kind, n.text, wrong)
	}
	out := []byte{}
	if n.isArray {
		for i, item := range n.sentItems() {
			out = append(append(out, ','), item.encode(p.item(i), mistakes)...)
		}
		return brackets('[', out, ']')
	}
	if n.kind == asJSON { // the members that the schema does not name
		var others map[string]json.RawMessage
		if json.Unmarshal([]byte(n.text), &others) != nil || others == nil {
			return wrong("the other members must be a JSON object")
		}
		for _, name := range slices.Sorted(maps.Keys(others)) {
			if n.members[name] == nil || !n.members[name].isSent() {
				out = append(append(append(out, ','), quoted(name)...), ':')
				out = append(out, others[name]...)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.members)) {
		if member := n.members[name]; member.isSent() || member.weakly {
			out = append(append(append(out, ','), quoted(name)...), ':')
			out = append(out, member.encode(p.member(name), mistakes)...)
		}
	}
	return brackets('{', out, '}')
}

func brackets(begin byte, list []byte, end byte) json.RawMessage {
	if len(list) == 0 {
		return json.RawMessage{begin, end}
	}
	list[0] = begin
	return append(list, end)
}

func encodeText(k Kind, text string, wrong func(string) json.RawMessage) json.RawMessage {
	switch k {
	case asText:
		return quoted(text)
	case asNumber:
		if text = strings.TrimSpace(text); !isNumber(text) {
			return wrong("must be a number, such as 5, 0.5 or 1e3")
		}
	default:
		if err := checkJSON(text); err != nil {
			return wrong("is not JSON: " + err.Error())
		}
	}
	return json.RawMessage(text)
}

func checkJSON(text string) error {
	var value json.RawMessage
	var syntax *json.SyntaxError
	err := json.Unmarshal([]byte(text), &value)
	if errors.As(err, &syntax) {
		return fmt.Errorf("%w, at character %d", syntax, syntax.Offset)
	}
	return err
}

func isNumber(text string) bool {
	return text != "" && strings.ContainsAny(text[:1], "-0123456789") && json.Valid([]byte(text))
}

// quoted is a text as JSON, as readable as may be.
func quoted(text string) json.RawMessage {
	out := &bytes.Buffer{}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // A text always encodes.
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// pointer is a place as the API writes it.
func pointer(place []string) string {
	text := &strings.Builder{}
	for _, part := range place {
		text.WriteString("/" + escapeName.Replace(part))
	}
	return "#" + (&url.URL{Fragment: text.String()}).EscapedFragment()
}

// placeOf reads a pointer of the API; false for what is none, such as query.limit.
func placeOf(location string) ([]string, bool) {
	text, isPointer := strings.CutPrefix(location, "#")
	if decoded, err := url.PathUnescape(text); err == nil {
		text = decoded
	}
	if !isPointer || text == "" {
		return nil, isPointer
	}
	parts := strings.Split(strings.TrimPrefix(text, "/"), "/")
	for i := range parts {
		parts[i] = unescapeName.Replace(parts[i])
	}
	return parts, true
}
