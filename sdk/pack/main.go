// Command pack writes the packages of the SDKs, a wheel for pip and a tarball for
// npm, to the directory that it is given.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-jobs/holdfast/sdk"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pack DIRECTORY")
		os.Exit(2)
	}
	if err := pack(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func pack(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, packageOf := range []func() (sdk.Package, error){sdk.Wheel, sdk.Tarball} {
		packed, err := packageOf()
		if err != nil {
			return err
		}
		path := filepath.Join(dir, packed.Name)
		if err := os.WriteFile(path, packed.Content, 0o644); err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}
