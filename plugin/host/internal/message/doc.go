// Package message translates between the messages of the plugin protocol and the
// vocabulary of jobs. It trusts nothing that comes from a plugin process.
package message
