package api

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// fondness is how much a client wants a media type (RFC 9110, section 12.5.1).
type fondness struct {
	// quality is from 0, not at all, to 1.
	quality float64
	// precision is 2 when the client named the type, 1 for a range such as
	// text/*, 0 for */*.
	precision int
}

// fonder reports whether the client would rather have f than g. What it names
// it wants rather than what it merely bears.
func (f fondness) fonder(g fondness) bool {
	if f.quality != g.quality {
		return f.quality > g.quality
	}
	return f.quality > 0 && f.precision > g.precision
}

// fondnessOf returns how much the client wants one of the media types, the one
// that it wants most. Without a header it bears them all. Members that make no
// sense are passed over.
func fondnessOf(header http.Header, types ...string) fondness {
	accepted := strings.Join(header.Values("Accept"), ",")
	if strings.TrimSpace(accepted) == "" {
		accepted = "*/*"
	}
	var most fondness
	for _, media := range types {
		var found fondness
		precision := -1
		for member := range strings.SplitSeq(accepted, ",") {
			span, parameters, err := mime.ParseMediaType(member)
			fit := fitOf(media, span)
			quality, ok := qualityOf(parameters)
			// Of several that fit, the most precise counts; of these, the best.
			if err != nil || !ok || fit < precision || (fit == precision && quality < found.quality) || fit < 0 {
				continue
			}
			precision, found = fit, fondness{quality: quality, precision: fit}
		}
		if found.fonder(most) {
			most = found
		}
	}
	return most
}

// fitOf returns how precisely the range names the media type; -1 when it does
// not.
func fitOf(media, span string) int {
	kind, _, _ := strings.Cut(media, "/")
	switch span {
	case media:
		return 2
	case kind + "/*":
		return 1
	case "*/*":
		return 0
	}
	return -1
}

func qualityOf(parameters map[string]string) (float64, bool) {
	text, given := parameters["q"]
	if !given {
		return 1, true
	}
	quality, err := strconv.ParseFloat(text, 64)
	return quality, err == nil && quality >= 0 && quality <= 1
}
