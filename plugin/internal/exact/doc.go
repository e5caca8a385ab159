// Package exact decodes JSON as encoding/json does, but by the names that are
// written: the case of a member's name counts, and of several members with
// the same name only the last one is there.
//
// Schemas read objects in that way. encoding/json takes "TO" for a field
// named "to", and lays objects over each other that have the same name, so
// that it could decode what no schema has seen.
package exact
