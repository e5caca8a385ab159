package conformance

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// coreProtocol is go-plugin's own version, the first field of its handshake.
const coreProtocol = "1"

// looksLikeHandshake tells the handshake from other lines before it.
var looksLikeHandshake = regexp.MustCompile(`^\d+\|[^|]*\|(unix|tcp)\|`).MatchString

// readHandshake checks the line that a process prints when it accepts connections. The
// socket must be in the directory. The certificate may be missing.
//
//	1|<version>|unix|<path>|grpc|<certificate>
func readHandshake(line, dir string) (path, certificate string, err error) {
	fields := strings.Split(strings.TrimSpace(line), "|")
	if len(fields) < 5 {
		return "", "", fmt.Errorf("the handshake has %d fields, fewer than 5: %.200q", len(fields), line)
	}
	if len(fields) > 5 {
		certificate = fields[5]
	}
	switch path = fields[3]; {
	case fields[0] != coreProtocol:
		err = fmt.Errorf("the handshake's first field is %q, not %q", fields[0], coreProtocol)
	case fields[1] != strconv.Itoa(protocol.Version):
		err = fmt.Errorf("the handshake offers version %q of the protocol, not %d", fields[1], protocol.Version)
	case fields[2] != "unix":
		err = fmt.Errorf("it listens on %s, not on a unix socket", fields[2])
	case filepath.Dir(filepath.Clean(path)) != dir:
		err = fmt.Errorf("its socket %.200q is not in the directory of PLUGIN_UNIX_SOCKET_DIR", path)
	case fields[4] != "grpc":
		err = fmt.Errorf("it speaks %q, not grpc", fields[4])
	}
	return path, certificate, err
}
