package submission

import (
	"strconv"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Find returns the value in a payload that the pointer leads to; nil if there is none.
// Of members with the same name, the last counts. If the payload is a string of JSON, the
// pointer leads into that JSON, because handlers read it that way.
func Find(payload []byte, to job.Pointer) []byte {
	s := scanner{text: payload}
	if len(to) > 0 && s.next() == '"' {
		content, _ := text(payload[s.i:])
		s = scanner{text: []byte(content)}
	}
	found, isJSON := s.find(to)
	if !isJSON || !s.atEnd() {
		return nil
	}
	return found
}

// find passes over a value, and returns what the pointer leads to within it.
func (s *scanner) find(to job.Pointer) (found []byte, isJSON bool) {
	c := s.next()
	switch begin := s.i; {
	case len(to) == 0:
		isJSON = s.value()
		return s.text[begin:s.i], isJSON
	case c == '{':
		isJSON = s.object(func(quoted []byte) (isJSON bool) {
			if name, err := text(quoted); err != nil || name != to[0] {
				return s.value()
			}
			found, isJSON = s.find(to[1:])
			return isJSON
		})
	case c == '[':
		index := 0
		isJSON = s.array(func() (isJSON bool) {
			here := strconv.Itoa(index) == to[0]
			if index++; !here {
				return s.value()
			}
			found, isJSON = s.find(to[1:])
			return isJSON
		})
	default:
		isJSON = s.value()
	}
	return found, isJSON
}
