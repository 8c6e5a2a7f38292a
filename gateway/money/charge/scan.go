package charge

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/filter"
)

// scan reads the figures of a run from a JSON document as it passes, in memory
// that does not grow with it. Of a document that is not JSON it reads nonsense.
type scan struct {
	filter.Ran

	// depth counts the containers that are open. Of the outer ones, names holds the
	// name of the member at hand, and objects which of them are objects.
	depth   int
	names   [scanDepth]string
	objects [scanDepth]bool
	// key says that the next string is a name.
	key, inText, escaped bool
	// token is the beginning of the string or literal at hand.
	token []byte
	bare  bool // it is a literal
}

const (
	// scanDepth is how deep the figures may lie: a list of outputs with their usage.
	scanDepth = 4
	// maxToken bounds the kept part of a string.
	maxToken = filter.MaxID
)

// Write implements io.Writer. It does not fail.
func (s *scan) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if s.inText {
			p = p[s.text(p):]
			continue
		}
		s.structure(p[0])
		p = p[1:]
	}
	return n, nil
}

// text reads a part of a string and returns its length, which is not 0.
func (s *scan) text(p []byte) int {
	if s.escaped {
		s.escaped = false
		s.keep(p[:1])
		return 1
	}
	end := bytes.IndexByte(p, '"')
	if end < 0 {
		end = len(p)
	}
	if at := bytes.IndexByte(p[:end], '\\'); at >= 0 {
		s.keep(p[:at+1])
		s.escaped = true
		return at + 1
	}
	s.keep(p[:end])
	if end == len(p) {
		return end
	}
	s.inText = false
	if !s.key {
		s.found()
	} else if s.depth <= scanDepth {
		s.names[s.depth-1] = string(s.token)
	}
	return end + 1
}

// structure reads a byte outside of strings.
func (s *scan) structure(c byte) {
	switch c {
	case '"':
		s.inText, s.token = true, s.token[:0]
	case '{', '[':
		s.depth++
		s.key = c == '{'
		if s.depth <= scanDepth {
			s.names[s.depth-1], s.objects[s.depth-1] = "", s.key
		}
	case '}', ']':
		s.literal()
		s.depth, s.key = max(0, s.depth-1), false
	case ',':
		s.literal()
		s.key = s.depth > 0 && s.depth <= scanDepth && s.objects[s.depth-1]
	case ':':
		s.key = false
	case ' ', '\t', '\n', '\r':
		s.literal()
	default:
		if !s.bare {
			s.bare, s.token = true, s.token[:0]
		}
		s.keep([]byte{c})
	}
}

func (s *scan) literal() {
	if s.bare {
		s.bare = false
		s.found()
	}
}

func (s *scan) keep(p []byte) {
	s.token = append(s.token, p[:min(len(p), maxToken-len(s.token))]...)
}

// found notes a value that is no container.
func (s *scan) found() {
	if s.depth == 0 || s.depth > scanDepth {
		return
	}
	path := make([]string, 0, scanDepth)
	for i := range s.depth {
		if s.objects[i] {
			path = append(path, s.names[i])
		}
	}
	value := string(s.token)
	n, isNumber := filter.Number(json.Number(value))
	switch place := strings.Join(path, "."); {
	case place == "id":
		s.ID = value
	case place == "status":
		s.Status = value
	case !isNumber:
	case place == "executionTime":
		s.Finished, s.Executed = true, milliseconds(n)
	case place == "delayTime":
		s.Queued = milliseconds(n)
	case place == "usage.prompt_tokens", place == "usage.input_tokens", place == "usage.input", place == "output.usage.prompt_tokens", place == "output.usage.input":
		s.Prompt += int64(n)
	case place == "usage.completion_tokens", place == "usage.output_tokens", place == "usage.output", place == "output.usage.completion_tokens", place == "output.usage.output":
		s.Completion += int64(n)
	case place == "output.cost":
		s.Cost += n
	}
}

// result returns the figures read.
func (s *scan) result() *filter.Ran {
	if !s.Finished {
		s.Queued = 0 // it waits still
	}
	return &s.Ran
}
