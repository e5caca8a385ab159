package submission

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Digest is SHA-256 over a tenant, a job type, and the chosen members of a payload; the
// whole payload if none is chosen. It is equal for payloads that mean the same: white
// space, the order of members, and how a number or a string is written do not count. Nor
// do the order of the choice and repetitions in it. An absent member differs from null.
func Digest(tenant, jobType string, payload []byte, chosen []job.Pointer) [sha256.Size]byte {
	if len(chosen) == 0 {
		chosen = []job.Pointer{{}}
	}
	byText := make(map[string]job.Pointer, len(chosen))
	names := make([]string, 0, len(chosen))
	for _, pointer := range chosen {
		byText[pointer.String()] = pointer
		names = append(names, pointer.String())
	}
	slices.Sort(names)
	var e encoder
	e.name(tenant)
	e.name(jobType)
	for _, name := range slices.Compact(names) {
		e.name(name)
		if found := Find(payload, byText[name]); found != nil {
			e.scanner = scanner{text: found}
			e.value()
		} else {
			e.write('-')
		}
	}
	return sha256.Sum256(e.out)
}

// encoder writes JSON values so that equal ones have equal bytes, and different ones do
// not. No value's bytes begin another's.
type encoder struct {
	scanner
	out []byte
}

func (e *encoder) write(c byte) { e.out = append(e.out, c) }

// name writes a text with its length before it.
func (e *encoder) name(text string) {
	e.out = binary.AppendUvarint(e.out, uint64(len(text)))
	e.out = append(e.out, text...)
}

// value passes over a value and writes it.
func (e *encoder) value() bool {
	switch c := e.next(); c {
	case '{':
		return e.object()
	case '[':
		e.write('[')
		isJSON := e.array(e.value)
		e.write(']')
		return isJSON
	case '"':
		begin := e.i
		isJSON := e.string()
		e.write('"')
		e.name(unquoted(e.text[begin:e.i]))
		return isJSON
	case 't', 'f', 'n':
		e.write(c)
		return e.scanner.value()
	}
	begin := e.i
	isJSON := e.number()
	e.write('#')
	e.name(plainNumber(string(e.text[begin:e.i])))
	return isJSON
}

// object writes the members in the order of their names. Of members with the same name,
// the last counts.
func (e *encoder) object() bool {
	type member struct {
		name       string
		begin, end int // in out
	}
	var all []member
	begin := len(e.out)
	isJSON := e.scanner.object(func(quoted []byte) bool {
		one := member{name: unquoted(quoted), begin: len(e.out)}
		isJSON := e.value()
		one.end = len(e.out)
		all = append(all, one)
		return isJSON
	})
	slices.SortStableFunc(all, func(a, b member) int { return strings.Compare(a.name, b.name) })
	values := bytes.Clone(e.out[begin:])
	e.out = append(e.out[:begin], '{')
	for i, one := range all {
		if i+1 < len(all) && all[i+1].name == one.name {
			continue
		}
		e.write('"')
		e.name(one.name)
		e.out = append(e.out, values[one.begin-begin:one.end-begin]...)
	}
	e.write('}')
	return isJSON
}

// unquoted is the content of a string. Unlike in encoding/json, lone surrogates stay
// different: they become three bytes each, which no UTF-8 text has.
func unquoted(quoted []byte) string {
	body := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(body, '\\') < 0 {
		return string(body)
	}
	out := make([]byte, 0, len(body))
	for i := 0; i < len(body); {
		if body[i] != '\\' {
			out = append(out, body[i])
			i++
			continue
		}
		if at := strings.IndexByte(`"\/bfnrt`, body[i+1]); at >= 0 {
			out = append(out, "\"\\/\b\f\n\r\t"[at])
			i += 2
			continue
		}
		r := codeUnit(body[i:])
		i += 6
		if !utf16.IsSurrogate(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		if pair := utf16.DecodeRune(r, codeUnit(body[i:])); pair != utf8.RuneError {
			out = utf8.AppendRune(out, pair)
			i += 6
			continue
		}
		out = append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
	}
	return string(out)
}

// codeUnit is what the text begins with, if that is \uXXXX; otherwise -1.
func codeUnit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	r, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(r)
}

// maxPlainDigits bounds a number that is written without an exponent.
const maxPlainDigits = 30

// plainNumber writes a JSON number so that equal ones have equal texts: 1.50, 15e-1 and
// 1.5 are the last. An exponent of more than 18 digits is left as it is.
func plainNumber(number string) string {
	mantissa, exponent := number, 0
	if at := strings.IndexAny(number, "eE"); at >= 0 {
		var err error
		if exponent, err = strconv.Atoi(number[at+1:]); err != nil || len(number)-at > 18 {
			return number
		}
		mantissa = number[:at]
	}
	sign := ""
	if rest, negative := strings.CutPrefix(mantissa, "-"); negative {
		sign, mantissa = "-", rest
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent -= len(fraction)
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	significant := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(significant)
	switch n := len(significant); {
	case exponent == 0, exponent > 0 && n+exponent <= maxPlainDigits:
		return sign + significant + strings.Repeat("0", exponent)
	case exponent < 0 && n+exponent > 0:
		return sign + significant[:n+exponent] + "." + significant[n+exponent:]
	case exponent < 0 && -exponent <= maxPlainDigits:
		return sign + "0." + strings.Repeat("0", -exponent-n) + significant
	}
	return sign + significant + "e" + strconv.Itoa(exponent)
}
