package nextstate_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/policies/nextstate"
)

// Policies see the command that the platform runs: a request changes the halves that it names
// and keeps the others (reference platform-v2, section 4.3).
func TestCommand(t *testing.T) {
	const (
		shell = `"args":"{\"entrypoint\":[\"sh\",\"-c\"],\"cmd\":[\"a b\"]}"`
		plain = `"args":"python 'a b.py'"`
		open  = `"args":"echo 'a"`
	)
	tests := []struct{ name, base, body, want string }{
		{"cmd over a template in JSON form", shell, `"cmd":["c"]`, `"args":"{\"entrypoint\":[\"sh\",\"-c\"],\"cmd\":[\"c\"]}","entrypoint":["sh","-c"],"cmd":["c"]`},
		{"cmd over both halves", shell + `,"entrypoint":["sh","-c"],"cmd":["a b"]`, `"cmd":["c"]`, `"args":"{\"entrypoint\":[\"sh\",\"-c\"],\"cmd\":[\"c\"]}","entrypoint":["sh","-c"],"cmd":["c"]`},
		{"entrypoint over a shell string", plain, `"entrypoint":["e"]`, `"args":"{\"entrypoint\":[\"e\"],\"cmd\":[\"python\",\"a b.py\"]}","entrypoint":["e"],"cmd":["python","a b.py"]`},
		{"an empty half clears one", shell, `"cmd":[]`, `"args":"{\"entrypoint\":[\"sh\",\"-c\"]}","entrypoint":["sh","-c"],"cmd":[]`},
		{"both halves cleared", shell, `"cmd":[],"entrypoint":[]`, `"args":"","entrypoint":[],"cmd":[]`},
		{"args over all", shell, `"args":"x & y"`, `"args":"x & y","entrypoint":[],"cmd":["x","&","y"]`},
		{"args cleared", shell, `"args":""`, `"args":"","entrypoint":[],"cmd":[]`},
		{"args beside the same cmd", shell, `"args":"x","cmd":["x"]`, `"args":"x","entrypoint":[],"cmd":["x"]`},
		{"no command of its own", shell, `"image":"i"`, `"image":"i",` + shell + `,"entrypoint":["sh","-c"],"cmd":["a b"]`},
		{"halves alone", `"args":""`, `"cmd":["<&>"]`, `"args":"{\"cmd\":[\"<&>\"]}","entrypoint":[],"cmd":["<&>"]`},
		{"an open quote", open, `"image":"i"`, `"image":"i",` + open},
		{"cmd over an open quote", open, `"cmd":["c"]`, `"args":"{\"cmd\":[\"c\"]}","entrypoint":[],"cmd":["c"]`},
		{"entrypoint over an open quote", open, `"entrypoint":["e"]`, "/entrypoint: cannot be combined with the current args, which cannot be split into words: send 'cmd' as well [4xx]"},
		{"args agree with cmd", "", `"args":"python -c 'print(1)'","cmd":["python","-c","print(1)"]`, `"args":"python -c 'print(1)'","cmd":["python","-c","print(1)"],"entrypoint":[]`},
		{"args disagree with cmd", "", `"args":"python a.py","cmd":["python","b.py"]`, "/args: contains a different command than 'cmd' [4xx]"},
		{"args are a cmd alone", "", `"args":"a.py","entrypoint":["python"]`, "/args: contains a different entry point than 'entrypoint' [4xx]"},
		{"args agree with no entry point", "", `"args":"a.py","entrypoint":[]`, `"args":"a.py","cmd":["a.py"],"entrypoint":[]`},
		{"JSON args disagree", "", `"args":"{\"entrypoint\":[\"python\"]}","cmd":["a.py"]`, "/args: contains a different command than 'cmd' [4xx]"},
		{"JSON with a duplicate name is a shell string", "", `"args":"{\"cmd\":[\"a\"],\"cmd\":[\"b\"]}","cmd":["b"]`, "/args: contains a different command than 'cmd' [4xx]"},
		{"JSON that is no command is a shell string", "", `"args":"{\"cmd\":\"a\"}","cmd":["{cmd:a}"]`, `"args":"{\"cmd\":\"a\"}","cmd":["{cmd:a}"],"entrypoint":[]`},
		{"JSON with another member is a shell string", "", `"args":"{\"cmd\":[\"a\"],\"user\":[]}","cmd":["a"]`, "/args: contains a different command than 'cmd' [4xx]"},
		{"an empty JSON object is no command", "", `"args":"{}","cmd":[],"entrypoint":[]`, `"args":"{}","cmd":[],"entrypoint":[]`},
		{"an empty JSON object is no shell string", "", `"args":"{}","cmd":["{}"]`, "/args: contains a different command than 'cmd' [4xx]"},
		{"a shell group is no JSON", "", `"args":"{ echo hi; }","cmd":["{","echo","hi;","}"]`, `"args":"{ echo hi; }","cmd":["{","echo","hi;","}"],"entrypoint":[]`},
		{"an open quote beside cmd", "", `"args":"echo 'hi","cmd":["echo","hi"]`, "/args: cannot be split into words and therefore cannot be compared with 'cmd' and 'entrypoint' [4xx]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body, want := decode(t, "{"+tt.body+"}"), tt.want
			if want[0] == '"' {
				want = "{" + want + "}"
			}
			same(t, want, canonical(nextstate.Update("updateTemplate", decode(t, "{"+tt.base+"}"), body, nil)))
			if tt.base == "" || want[0] == '/' {
				return
			}
			// The same by a template, in an update and in a create.
			template := decode(t, `{"serverless":true,`+tt.base+"}")
			old := decode(t, `{"args":"old","entrypoint":["old"],"cmd":["old"]}`)
			body["templateId"] = "t"
			updated, err := nextstate.Update("updateEndpoint", old, body, template)
			delete(updated, "templateId")
			same(t, want, canonical(updated, err))
			made, err := nextstate.Create("createEndpoint", body, template)
			for _, name := range []string{"templateId", "type", "timeout", "flashboot", "workers"} {
				delete(made, name)
			}
			same(t, want, canonical(made, err))
		})
	}
}
