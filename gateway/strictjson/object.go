package strictjson

import "slices"

// Object is a JSON object as a list of its members: what is read once and not changed
// needs no map.
type Object []Member

// Member is a member of an Object.
type Member struct {
	Name  string
	Value any
}

// maxListed is how many members an Object has at most: each look-up passes through them.
const maxListed = 40

// DecodeListed is DecodeLenient, but for objects of few members, which are of type
// Object in the result.
func DecodeListed(data []byte) (any, error) {
	b := builder{data: data, separate: true, objects: true, lim: AnswerLimits()}
	if v, ok := b.document(); ok {
		return v, nil
	}
	return judge(data, AnswerLimits())
}

// Get returns the value of a member.
func (o Object) Get(name string) (value any, ok bool) {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value, true
		}
	}
	return nil, false
}

// Map returns the object as DecodeLenient does.
func (o Object) Map() map[string]any {
	m := make(map[string]any, len(o))
	for _, member := range o {
		m[member.Name] = unlisted(member.Value)
	}
	return m
}

// unlisted returns a value without Objects in it.
func unlisted(v any) any {
	switch v := v.(type) {
	case Object:
		return v.Map()
	case map[string]any: // a large one
		m := make(map[string]any, len(v))
		for name, value := range v {
			m[name] = unlisted(value)
		}
		return m
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = unlisted(item)
		}
		return items
	}
	return v
}

func hasName(members []Member, name string) bool {
	return slices.ContainsFunc(members, func(m Member) bool { return m.Name == name })
}
