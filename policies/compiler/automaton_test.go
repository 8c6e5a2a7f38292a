package compiler

import (
	"regexp"
	"strings"
	"testing"
)

// expressions are of every kind of instruction and assertion.
var expressions = []string{
	``, `a`, `^a$`, `(?i)secret`, `(?m)^b+$`, `\bab?\b`, `a\B.`, `(?s)a.b`, `a.b`, `[^a-c]{2,3}$`, `\A(?:a|ab)*\z`, `^[A-Za-z0-9]+_SECRET_`,
	`^(?:[a-z]+-[a-z0-9-]+)$`, `^[0-9]{1,6}/(http|tcp)$`, `[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s:@]+@`, `\b(AKIA|ASIA)[0-9A-Z]{4}\b`, `a||b`,
	`(a*)*b`, `[[:word:]]+é?`, `\x{212a}`, `(?i)k`, `$^`, `x*$`, `[^\x00-\x7f]`, `\PL`, `(^|,)b`, `a{0}`, `(?:^b)*a`,
}

// held holds what an automaton finds against package regexp.
func held(t *testing.T, a *automaton, re *regexp.Regexp, text string) {
	t.Helper()
	got, sure := a.match(text)
	if sure && got != re.MatchString(text) {
		t.Errorf("%q matches %q: got %t, want %t", re, text, got, !got)
	}
}

func TestAutomatonMatches(t *testing.T) {
	for _, expression := range expressions {
		a := newAutomaton(expression)
		if a == nil {
			t.Fatalf("%q has no automaton", expression)
		}
		re := regexp.MustCompile(expression)
		texts := []string{""}
		for range 4 { // every text of up to four letters
			for _, text := range texts {
				for _, letter := range "abB-_/\n" {
					texts = append(texts, text+string(letter))
				}
			}
			texts = texts[min(len(texts)/2, 400):]
			for _, text := range texts {
				held(t, a, re, text)
			}
		}
		if _, sure := a.match("ab"); !sure {
			t.Errorf("%q: the automaton is not sure of a short text", expression)
		}
		if _, sure := a.match("\xff"); sure {
			t.Errorf("%q: the automaton is sure of what is not ASCII", expression)
		}
	}
}

// What would take too much is left to the function itself.
func TestAutomataAreBounded(t *testing.T) {
	for _, expression := range []string{`(`, strings.Repeat("a", maxExpression+1), `(?:[ab]{50}){50}`} {
		if newAutomaton(expression) != nil {
			t.Errorf("%.20q… has an automaton", expression)
		}
	}
	a := newAutomaton(`(a|b)*a(a|b){14}$`) // 2^15 states
	sure, unsure, seed := 0, 0, uint32(1)
	for range 50 {
		var text strings.Builder
		for range 200 {
			seed = seed*1664525 + 1013904223
			text.WriteByte("ab"[seed>>31])
		}
		if _, ok := a.match(text.String()); ok {
			sure++
		} else {
			unsure++
		}
		if len(a.states) > maxStates {
			t.Fatalf("%d states", len(a.states))
		}
	}
	if unsure == 0 || sure == 0 {
		t.Errorf("sure of %d texts and not of %d, want both", sure, unsure)
	}
}

// FuzzAutomaton: an automaton matches what package regexp matches.
func FuzzAutomaton(f *testing.F) {
	for _, expression := range expressions {
		f.Add(expression, "a-b AKIA0123 x://u:p@h\nb_SECRET_ 8888/http")
	}
	f.Fuzz(func(t *testing.T, expression, text string) {
		a := newAutomaton(expression)
		if a == nil {
			return
		}
		re, err := regexp.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		for i := range min(len(text), 20) { // over states that are there
			held(t, a, re, text[i:])
		}
		held(t, a, re, text)
	})
}
