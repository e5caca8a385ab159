package api

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// preference is how much a client wants a media type (RFC 9110, section 12.5.1).
type preference struct {
	// quality is from 0, not at all, to 1.
	quality float64
	// precision is 2 if the client named the type, 1 for a range such as text/*, and
	// 0 for */*.
	precision int
}

// over reports whether the client prefers p to q. If it wants both equally, it prefers
// the one that it named more precisely.
func (p preference) over(q preference) bool {
	if p.quality != q.quality {
		return p.quality > q.quality
	}
	return p.quality > 0 && p.precision > q.precision
}

// prefersPrometheus reports whether the client prefers a format of Prometheus to
// JSON. Without a preference it gets JSON.
func prefersPrometheus(header http.Header) bool {
	accepted := strings.Join(header.Values("Accept"), ",")
	json := preferenceFor(accepted, mediaJSON)
	return preferenceFor(accepted, "text/plain").over(json) || preferenceFor(accepted, "application/openmetrics-text").over(json)
}

// preferenceFor returns how much the client wants a media type. If several ranges
// match, the most precise one counts; among equally precise ones, the one with the
// highest quality. Members that cannot be read are ignored.
func preferenceFor(accepted, media string) preference {
	if strings.TrimSpace(accepted) == "" {
		return preference{quality: 1}
	}
	best := preference{precision: -1}
	for member := range strings.SplitSeq(accepted, ",") {
		mediaRange, parameters, err := mime.ParseMediaType(member)
		found, ok := qualityOf(parameters)
		if err != nil || !ok {
			continue
		}
		switch kind, _, _ := strings.Cut(media, "/"); mediaRange {
		case media:
			found.precision = 2
		case kind + "/*":
			found.precision = 1
		case "*/*":
		default:
			continue
		}
		if found.precision > best.precision || found.precision == best.precision && found.quality > best.quality {
			best = found
		}
	}
	return best
}

func qualityOf(parameters map[string]string) (preference, bool) {
	text, given := parameters["q"]
	if !given {
		return preference{quality: 1}, true
	}
	quality, err := strconv.ParseFloat(text, 64)
	return preference{quality: quality}, err == nil && quality >= 0 && quality <= 1
}
