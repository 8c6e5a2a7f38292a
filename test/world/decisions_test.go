package world

import (
	"testing"
)

// complaints is a test that counts its complaints.
type complaints struct {
	testing.TB
	n int
}

func (c *complaints) Errorf(string, ...any) { c.n++ }

// An input that is not of the schema fails a test, or the suites would prove nothing.
func TestInputsOutsideTheSchemaFail(t *testing.T) {
	schema, err := inputSchema()
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]int{
		`{"input":{"version":1,"request":{"operation":"listPods"}}}`:   0,
		`{"input":{"version":1,"request":{"operation":7}}}`:            1,
		`{"input":{"version":1,"request":{"operatoin":"listPods"}}}`:   1,
		`{"input":{"version":"1"}}`:                                    1,
		`{"input":{},"extra":1}`:                                       0,
		`{"error":{"code":"input_error","message":"unfit"}}`:           1,
		`{"result":{"allowed":true}}`:                                  1,
		`{"input":{"resource":{"kind":"pod"}}}` + "\n" + `{"input":1}`: 1,
	} {
		c := &complaints{TB: t}
		if _, err := (inputs{c, schema}).Write([]byte(line + "\n")); err != nil || c.n != want {
			t.Errorf("%s: %d complaints, %v, want %d", line, c.n, err, want)
		}
	}
}
