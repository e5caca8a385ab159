package child

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"strings"
)

// openVerified opens the binary and compares its checksum.
func openVerified(path, checksum string) (*os.File, error) {
	binary, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	digest := sha256.New()
	if _, err = io.Copy(digest, binary); err == nil && !strings.EqualFold(hex.EncodeToString(digest.Sum(nil)), checksum) {
		err = ErrChecksum
	}
	if err != nil {
		_ = binary.Close()
		return nil, err
	}
	return binary, nil
}
