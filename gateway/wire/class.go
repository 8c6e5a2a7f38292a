package wire

import "strings"

// Classes of bytes. upper is set for upper-case letters. Its value is the bit in which they differ from lower-case letters, so that
// c|class[c]&upper is c in lower case.
const (
	token     = 1 << iota // tchar (RFC 9110, section 5.6.2)
	visible               // VCHAR except #, which begins a fragment
	text                  // field-vchar without obs-text, SP and HTAB
	authority             // characters of host and port, narrowed
	_
	upper // 0x20
)

//nolint:gochecknoglobals // a constant, in all but the language's sense
var class = classes()

func classes() (t [256]byte) {
	for c := range 128 {
		b := byte(c)
		letter := b|upper >= 'a' && b|upper <= 'z'
		digit := b >= '0' && b <= '9'
		if b > ' ' && b < 0x7f {
			t[b] |= text
			if b != '#' {
				t[b] |= visible
			}
		}
		if b == ' ' || b == '\t' {
			t[b] |= text
		}
		if letter || digit || b != 0 && strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0 {
			t[b] |= token
		}
		if letter || digit || b != 0 && strings.IndexByte("-.:[]_~", b) >= 0 {
			t[b] |= authority
		}
		if b >= 'A' && b <= 'Z' {
			t[b] |= upper
		}
	}
	return t
}
