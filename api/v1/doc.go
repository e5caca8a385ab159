// Package v1 is the JSON of the HTTP API: what requests and answers hold. The
// server, the command line and the API's description share it. What only people
// see of plugins and of the database has no other type: the packages plugin/host
// and store fill it in. They give times in UTC, and lists that are not nil.
//
// The doc tag of a field is its text in the description. A field that is added
// to an answer breaks no client; one that is added to Submission must be read
// by the package submission.
package v1
