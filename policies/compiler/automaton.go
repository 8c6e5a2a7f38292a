package compiler

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
)

// automaton matches a regular expression against a text in one step per character. It is a deterministic automaton whose states are
// sets of positions in the compiled expression. States are created when first reached.
//
// It only accepts ASCII texts and has the same results as regexp.MatchString.
type automaton struct {
	program *syntax.Prog
	class   [128]uint8 // class of each character: characters of one class have the same transitions
	classes int
	start   atomic.Pointer[state]

	mu     sync.Mutex
	states map[string]*state // by their contents
}

// state is a state of an automaton.
type state struct {
	at     []uint32 // positions in the program, sorted
	before rune     // represents the previous character, -1 at the beginning
	next   []atomic.Pointer[state]
}

// matching and failed are the states in which the rest of the text does not matter.
var matching, failed = new(state), new(state)

const (
	// maxExpression limits the length of expressions in bytes, and maxProgram the number of instructions.
	maxExpression, maxProgram = 1 << 10, 1 << 11
	// maxStates limits the number of cached states; when it is reached, all are discarded.
	maxStates = 1 << 9
)

// newAutomaton returns the automaton of an expression, or nil if the expression is not supported.
func newAutomaton(expression string) *automaton {
	if len(expression) > maxExpression {
		return nil
	}
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	program, err := syntax.Compile(re.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return nil
	}
	a := &automaton{program: program}
	a.classify()
	a.reset()
	return a
}

// classify computes the character classes: characters that no instruction or assertion distinguishes.
func (a *automaton) classify() {
	known := map[string]uint8{}
	for letter := range a.class {
		r := rune(letter)
		like := []byte{byte(representative(r))}
		for i := range a.program.Inst {
			if in := &a.program.Inst[i]; reads(in) && in.MatchRune(r) {
				like = binary.AppendUvarint(like, uint64(i))
			}
		}
		class, ok := known[string(like)]
		if !ok {
			class = uint8(len(known))
			known[string(like)] = class
		}
		a.class[letter] = class
	}
	a.classes = len(known)
}

// reads reports whether an instruction consumes a character.
func reads(in *syntax.Inst) bool {
	return in.Op == syntax.InstRune || in.Op == syntax.InstRune1 || in.Op == syntax.InstRuneAny || in.Op == syntax.InstRuneAnyNotNL
}

// representative returns a representative of the characters that assertions do not distinguish.
func representative(r rune) rune {
	switch {
	case r == '\n':
		return r
	case syntax.IsWordChar(r):
		return 'a'
	}
	return ' '
}

// reset discards all states.
func (a *automaton) reset() {
	a.states = map[string]*state{}
	a.start.Store(a.state([]uint32{uint32(a.program.Start)}, -1))
}

// state returns an existing state or creates it.
func (a *automaton) state(at []uint32, before rune) *state {
	key := []byte{byte(before)}
	for _, i := range at {
		key = binary.BigEndian.AppendUint32(key, i)
	}
	s := a.states[string(key)]
	if s == nil {
		s = &state{at: at, before: before, next: make([]atomic.Pointer[state], a.classes+1)}
		a.states[string(key)] = s
	}
	return s
}

// match reports whether a text matches. sure is false if that cannot be determined.
func (a *automaton) match(text string) (matches, sure bool) {
	s := a.start.Load()
	for i := 0; i <= len(text) && s != matching && s != failed; i++ {
		letter, class := rune(-1), a.classes // end of text
		if i < len(text) {
			if text[i] >= 128 {
				return false, false
			}
			letter, class = rune(text[i]), int(a.class[text[i]])
		}
		n := s.next[class].Load()
		if n == nil {
			if n = a.step(s, letter); n == nil {
				return false, false
			}
			s.next[class].Store(n)
		}
		s = n
	}
	return s == matching, true
}

// step returns the state reached with a character, or with -1 for the end of the text. It returns nil if there are too many states.
func (a *automaton) step(from *state, letter rune) *state {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.states) >= maxStates {
		a.reset()
		return nil
	}
	to := []uint32{uint32(a.program.Start)} // a match may start anywhere
	here, flags := slices.Clone(from.at), syntax.EmptyOpContext(from.before, letter)
	seen := map[uint32]bool{}
	for len(here) > 0 {
		i := here[len(here)-1]
		here = here[:len(here)-1]
		if seen[i] {
			continue
		}
		seen[i] = true
		switch in := &a.program.Inst[i]; {
		case in.Op == syntax.InstMatch:
			return matching
		case in.Op == syntax.InstAlt, in.Op == syntax.InstAltMatch:
			here = append(here, in.Out, in.Arg)
		case in.Op == syntax.InstCapture, in.Op == syntax.InstNop,
			in.Op == syntax.InstEmptyWidth && syntax.EmptyOp(in.Arg)&^flags == 0:
			here = append(here, in.Out)
		case reads(in) && letter >= 0 && in.MatchRune(letter):
			to = append(to, in.Out)
		}
	}
	if letter < 0 {
		return failed
	}
	slices.Sort(to)
	to = slices.Compact(to)
	if len(to) == 1 && a.program.StartCond()&syntax.EmptyBeginText != 0 {
		return failed // a match could only start at the beginning
	}
	return a.state(to, representative(letter))
}
