package job

import (
	"bytes"
	"encoding/json"
	"slices"
)

// DuplicateMembers are the names that a JSON object has more than once, each once. Whoever
// reads such an object decides which of the values counts, so it means nothing. The members
// of other values are not looked at. The text must be JSON; it returns nil for what is no object.
func DuplicateMembers(text []byte) (names []string) {
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return nil
	}
	seen := make(map[string]bool)
	for d.More() {
		token, err := d.Token()
		name, isName := token.(string)
		if err != nil || !isName {
			return names
		}
		if seen[name] && !slices.Contains(names, name) {
			names = append(names, name)
		}
		seen[name] = true
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return names
		}
	}
	return names
}
