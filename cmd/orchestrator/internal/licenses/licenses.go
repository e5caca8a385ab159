// Package licenses has the license texts of what the programs are linked with.
package licenses

import _ "embed"

// ThirdParty is the texts, each below the modules that it is for. Its test
// gathers them again and fails when they are others, or one is missing.
//
//go:embed third_party.txt
var ThirdParty string
