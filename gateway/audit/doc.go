// Package audit keeps the record of all changes, with their authors and results:
// before a change the intent is written, behind it the result. Each line holds the
// SHA-256 of the line before, so that a line that is changed, left out or put in
// later is found by Verify.
package audit
