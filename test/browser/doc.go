// Package browser looks at the pages of the gateway with a real browser. There
// is no code here but tests.
package browser
