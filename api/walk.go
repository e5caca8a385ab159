package api

// The functions here find their way in text that is known to be JSON. They
// make nothing of it, and allocate nothing.

// eachMember calls visit with every member of an object: its name as it is
// written, quotes included, and its value.
func eachMember(object []byte, visit func(name, value []byte)) {
	for i := skipBlank(object, 1); object[i] != '}'; {
		end := valueEnd(object, i)
		value := skipBlank(object, skipBlank(object, end)+1)
		valueEnd := valueEnd(object, value)
		visit(object[i:end], object[value:valueEnd])
		i = skipComma(object, valueEnd)
	}
}

// eachItem calls visit with every item of an array, until it returns false.
func eachItem(array []byte, visit func(item []byte) bool) {
	for i := skipBlank(array, 1); array[i] != ']'; {
		end := valueEnd(array, i)
		if !visit(array[i:end]) {
			return
		}
		i = skipComma(array, end)
	}
}

func skipComma(text []byte, i int) int {
	if i = skipBlank(text, i); text[i] == ',' {
		i = skipBlank(text, i+1)
	}
	return i
}

func skipBlank(text []byte, i int) int {
	for i < len(text) && isBlank(text[i]) {
		i++
	}
	return i
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// valueEnd returns the offset after the value that begins at i.
func valueEnd(text []byte, i int) int {
	switch text[i] {
	case '"':
		return stringEnd(text, i)
	case '{', '[':
		for depth := 0; ; i++ {
			switch text[i] {
			case '"':
				i = stringEnd(text, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	for i < len(text) && !endsWord(text[i]) {
		i++
	}
	return i
}

// endsWord reports whether a number, true, false or null is over.
func endsWord(c byte) bool { return c == ',' || c == ']' || c == '}' || isBlank(c) }

// stringEnd returns the offset after the string whose first quote is at i.
func stringEnd(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}
