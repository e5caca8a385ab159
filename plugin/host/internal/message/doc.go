// Package message translates between the messages of the handler protocol and the
// vocabulary of jobs. What comes from a handler process is taken for what it may
// be: anything.
package message
