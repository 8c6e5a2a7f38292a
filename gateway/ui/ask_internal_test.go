package ui

import "testing"

// A panic of one question reaches the goroutine of the request, whose server recovers it, after all questions have ended.
func TestTogetherRaisesPanics(t *testing.T) {
	t.Parallel()
	ended := false
	defer func() {
		if recover() == nil || !ended {
			t.Errorf("the panic was not raised, or not after all questions (ended: %t)", ended)
		}
	}()
	together(func() { panic("a question") }, func() { ended = true })
}
