package compiler

import (
	"errors"
	"runtime"
	"testing"
)

// A form is made once for all that have it, again when none has, and a fault is not kept.
func TestForms(t *testing.T) {
	var f linkedCache
	made := 0
	link := func() (*linked, error) { made++; return &linked{}, nil }
	if _, err := f.of("a", func() (*linked, error) { return nil, errors.New("broken") }); err == nil {
		t.Fatal("a fault is lost")
	}
	first, err1 := f.of("a", link)
	second, err2 := f.of("a", link)
	other, err3 := f.of("b", link)
	if err := errors.Join(err1, err2, err3); err != nil || first != second || first == other || made != 2 {
		t.Errorf("made %d times: %p, %p, %p (%v)", made, first, second, other, err)
	}
	runtime.KeepAlive(second)
	runtime.KeepAlive(other)
	for held := 1; held > 0; { // the test's deadline bounds it
		runtime.GC()
		held = 0
		f.Range(func(any, any) bool { held++; return true })
	}
	if _, err := f.of("a", link); err != nil || made != 3 {
		t.Errorf("made %d times (%v)", made, err)
	}
}
