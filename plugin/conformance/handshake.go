package conformance

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// coreProtocol is go-plugin's own version, the first field of its handshake.
const coreProtocol = "1"

// handshake is the line that a process prints when it accepts connections. The
// certificate may be missing.
//
//	1|<version>|unix|<path>|grpc|<certificate>
type handshake struct{ path, certificate string }

// looksLikeHandshake tells the handshake from other lines before it.
func looksLikeHandshake(line string) bool {
	fields := strings.Split(line, "|")
	if len(fields) < 4 {
		return false
	}
	_, err := strconv.Atoi(fields[0])
	return err == nil && (fields[2] == "unix" || fields[2] == "tcp")
}

// readHandshake checks the line. The socket must be in the directory.
func readHandshake(line, dir string) (handshake, error) {
	fields := strings.Split(strings.TrimSpace(line), "|")
	if len(fields) < 5 {
		return handshake{}, fmt.Errorf("the handshake has %d fields, fewer than 5: %.200q", len(fields), line)
	}
	h := handshake{path: fields[3]}
	if len(fields) > 5 {
		h.certificate = fields[5]
	}
	switch {
	case fields[0] != coreProtocol:
		return h, fmt.Errorf("the handshake's first field is %q, not %q", fields[0], coreProtocol)
	case fields[1] != strconv.Itoa(protocol.Version):
		return h, fmt.Errorf("the handshake offers version %q of the protocol, not %d", fields[1], protocol.Version)
	case fields[2] != "unix":
		return h, fmt.Errorf("it listens on %s, not on a unix socket", fields[2])
	case filepath.Dir(filepath.Clean(h.path)) != dir:
		return h, fmt.Errorf("its socket %.200q is not in the directory of PLUGIN_UNIX_SOCKET_DIR", h.path)
	case fields[4] != "grpc":
		return h, fmt.Errorf("it speaks %q, not grpc", fields[4])
	}
	return h, nil
}

var errNoHandshake = errors.New("it printed no handshake line")
