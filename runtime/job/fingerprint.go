package job

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// maxPattern is the most bytes of a pattern.
	maxPattern = 200
	// patternReads is how many bytes of a message count for its pattern.
	patternReads = 1 << 10
	// fingerprintBytes is how much of a hash distinguishes errors. 64 bits are enough for
	// as many as a person will ever look at.
	fingerprintBytes = 8
)

// Fingerprint is the same, 16 hexadecimal digits, for errors that differ only in what
// ErrorPattern leaves out.
func Fingerprint(code, message string) string {
	sum := sha256.Sum256([]byte(code + "\x00" + ErrorPattern(message)))
	return hex.EncodeToString(sum[:fingerprintBytes])
}

// ErrorPattern is the message without what differs from job to job. Numbers, times,
// addresses, UUIDs, hexadecimal and other long tokens become #, as do parts of paths that
// contain digits or are in a folder for temporary files. Quoted text becomes an ellipsis in
// its quotes. It has at most maxPattern bytes, and it is its own pattern.
func ErrorPattern(message string) string {
	pattern := CleanText(message, patternReads)
	for {
		again := CleanText(generalized(pattern), maxPattern)
		if again == pattern {
			return pattern
		}
		pattern = again
	}
}

// elided stands for quoted text, between its quotes.
const elided = "…"

// generalized replaces once. It never makes a text longer but by elided, which it leaves
// alone, so repeating it comes to an end.
func generalized(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case isSpace(c):
			if out.Len() > 0 {
				out.WriteByte(' ')
			}
			for i < len(s) && isSpace(s[i]) {
				i++
			}
		case isQuote(c):
			end := quoteEnd(s, i)
			if end < 0 {
				out.WriteByte(c)
				i++
				continue
			}
			out.WriteByte(c)
			out.WriteString(elided)
			out.WriteByte(c)
			i = end + 1
		case isSeparator(c):
			out.WriteByte(c)
			i++
		default:
			end := i
			for end < len(s) && !isSpace(s[end]) && !isSeparator(s[end]) && (!isQuote(s[end]) || quoteEnd(s, end) < 0) {
				end++
			}
			out.WriteString(generalizedChunk(s[i:end]))
			i = end
		}
	}
	return strings.TrimRight(out.String(), " ")
}

// quoteEnd is where the quotation that begins at i ends; -1 if none does. An apostrophe
// within a word begins and ends nothing.
func quoteEnd(s string, i int) int {
	if i > 0 && isWord(s[i-1]) {
		return -1
	}
	for end := i + 1; end < len(s); end++ {
		switch {
		case s[end] == '\\':
			end++
		case s[end] == s[i] && (end+1 == len(s) || !isWord(s[end+1])):
			return end
		}
	}
	return -1
}

// generalizedChunk replaces in a text without spaces, quotations and brackets.
func generalizedChunk(chunk string) string {
	body := strings.TrimRight(chunk, ".:!?")
	rest := chunk[len(body):]
	if at := strings.IndexByte(body, '@'); at > 0 && isWord(body[at-1]) && at+1 < len(body) && isWord(body[at+1]) {
		return "#" + rest // an address of mail
	}
	parts := strings.Split(body, "/")
	for i, part := range parts {
		inPath := len(parts) > 2 || i > 0
		switch {
		case part == "":
		case inPath && (strings.ContainsFunc(part, isDigit) || parts[max(i-1, 0)] == "tmp"):
			parts[i] = "#"
		default:
			parts[i] = generalizedWords(part)
		}
	}
	return joinedNumbers(strings.Join(parts, "/")) + rest
}

func generalizedWords(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		end := i
		for end < len(s) && (isWord(s[end]) || s[end] == '-') {
			end++
		}
		if end == i {
			out.WriteByte(s[i])
			i++
			continue
		}
		out.WriteString(generalizedWord(s[i:end]))
		i = end
	}
	return out.String()
}

const (
	// wordLetters is from where on a word of letters alone is no word of a language.
	wordLetters = 40
	// tokenLength is from where on a word with numbers in it is a token.
	tokenLength = 20
	// hexLength is from where on hexadecimal digits are not taken for a word.
	hexLength = 8
)

func generalizedWord(word string) string {
	switch runs := digitRuns(word); {
	case runs == 0 && len(word) >= wordLetters && !strings.ContainsAny(word, "-_"),
		runs > 0 && isUUID(word),
		runs > 1 && len(word) >= tokenLength:
		return "#"
	case runs == 0:
		return word
	}
	var out strings.Builder
	for piece := range strings.FieldsFuncSeq(strings.ReplaceAll(strings.ReplaceAll(word, "-", " - "), "_", " _ "), func(r rune) bool { return r == ' ' }) {
		out.WriteString(generalizedPiece(piece))
	}
	return out.String()
}

// generalizedPiece replaces in a word without hyphens and underscores.
func generalizedPiece(piece string) string {
	runs := digitRuns(piece)
	if runs > 1 || runs == 1 && (len(piece) >= hexLength && isHex(piece) || strings.HasPrefix(piece, "0x")) {
		return "#"
	}
	var out strings.Builder
	for i := range len(piece) {
		switch {
		case !isDigit(rune(piece[i])):
			out.WriteByte(piece[i])
		case i == 0 || !isDigit(rune(piece[i-1])):
			out.WriteByte('#')
		}
	}
	return out.String()
}

// joinedNumbers makes one number of several that only punctuation separates, as in a
// time, a version or an address.
func joinedNumbers(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		out.WriteByte(s[i])
		if s[i] != '#' {
			continue
		}
		for {
			end := i + 1
			for end < len(s) && strings.IndexByte(".:+-", s[end]) >= 0 {
				end++
			}
			if end == len(s) || s[end] != '#' {
				break
			}
			i = end
		}
	}
	return out.String()
}

// digitRuns counts the numbers in a word. What stands for a number counts as one.
func digitRuns(word string) int {
	runs, before := 0, false
	for _, r := range word {
		if isDigit(r) && !before {
			runs++
		}
		before = isDigit(r)
	}
	return runs
}

func isUUID(word string) bool {
	_, err := ParseID(word)
	return err == nil
}

func isHex(piece string) bool {
	return strings.Trim(piece, "0123456789abcdefABCDEF#") == ""
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' || r == '#' }

// isWord says so of the letters of ASCII only: in other scripts, words can be longer than
// a token.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || isDigit(rune(c))
}

func isSpace(c byte) bool { return c <= ' ' }

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

func isSeparator(c byte) bool { return strings.IndexByte("[](){}<>,;|=&", c) >= 0 }
