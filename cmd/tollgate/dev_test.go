package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Values of .env have the form that the toolkit reads: with quotes, comments and a byte
// order mark, as editors write them.
func TestValuesOfDotEnv(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"KEY=tg_a":                       "tg_a",
		"\ufeffKEY=tg_a":                 "tg_a",
		"\ufeff# mine\r\nKEY=tg_a\r\n":   "tg_a",
		"KEY=tg_a # mine":                "tg_a",
		"KEY=tg_a\t# mine":               "tg_a",
		"KEY=tg_a#b":                     "tg_a#b",
		"KEY= # none":                    "",
		"KEY=\"tg_a\" # mine":            "tg_a",
		"KEY='tg # a' # mine":            "tg # a",
		"KEY=\"tg_a":                     "\"tg_a",
		"export KEY = tg_a":              "tg_a",
		"#KEY=tg_b\nOTHER=x\nKEY=tg_a\n": "tg_a",
		"OTHER=x":                        "",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := dotEnv(dir, "KEY"); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", text, got, err, want)
		}
	}
}
