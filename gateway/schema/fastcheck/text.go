package fastcheck

import (
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// addTexts adds the demands on strings. Lengths count code points.
func (b *builder) addTexts(n *node, s *jsonschema.Schema) {
	if least := s.MinLength; least != -1 {
		n.texts = append(n.texts, func(v string) verdict { return verdictOf(utf8.RuneCountInString(v) >= least) })
	}
	if most := s.MaxLength; most != -1 {
		n.texts = append(n.texts, func(v string) verdict { return verdictOf(utf8.RuneCountInString(v) <= most) })
	}
	if pattern := s.Pattern; pattern != nil {
		n.texts = append(n.texts, func(v string) verdict { return verdictOf(pattern.MatchString(v)) })
	}
}
