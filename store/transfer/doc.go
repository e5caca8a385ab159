// Package transfer moves a ledger from one database to another through a file.
//
// Export closes the ledger first: from then on the database itself refuses every change,
// from any program, so nothing can be accepted or run after the file was begun. A closed
// ledger is also what makes an export that was killed go on where it was.
//
// Import writes into an empty schema of the same version, which is closed to everybody
// else until all rows are in and were compared with the file. How far it is, it writes in
// the transaction that writes the rows.
//
// A file has one JSON value a line:
//
//	{"format":"holdfast-ledger","version":1,"schema":20,"export":"…","tables":[…],…}
//	{"table":"jobs","first":0}
//	["01a1fd91-…","default",null,…]
//	{"rows":1,"sha256":"…"}
//	{"end":true,"rows":1,"digests":{"jobs":"…"},"sha256":"…"}
//
// The first line is Header. A segment follows another: its table, rows, and how many rows
// it had. A row has the text of each column, as PostgreSQL prints it, or null: so it is
// restored exactly, whatever its type. sha256 is of all bytes before the line. A digest is
// of the rows of a table in any order (see Digest), to compare them with what a database
// has.
package transfer
