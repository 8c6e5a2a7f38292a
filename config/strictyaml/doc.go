// Package strictyaml decodes configuration files from YAML into Go structs. It reports all faults at once, each with its file, line, column
// and full path.
//
// # Strictness
//
// The accepted language is YAML 1.2 (core schema) without the features that a configuration does not need, or that YAML parsers interpret
// differently. The following are refused: anchors, aliases, merge keys, tags, directives, complex keys, more than one document, keys that
// are not strings, duplicate keys, numbers such as 0777 or 1_000, strings over several lines without quotes or a block indicator, byte
// order marks, control characters and bidirectional formatting characters. A file has at most [MaxSize] bytes and [MaxDepth] levels.
//
// A key without a struct field is a fault; the message suggests the likely name. Values are not converted: "80" with quotes is a string,
// which a numeric field does not accept. A key with an empty or null value is a fault, so that an allow-list left empty by mistake is not
// accepted. Only fields of type any accept null.
//
// # Types
//
// A field is decoded if it has a yaml tag such as `yaml:"name"`. The tag `yaml:"name,required"` makes the key mandatory, `yaml:"-"`
// excludes the field, and `yaml:",inline"` adds the keys of a struct to the enclosing struct. An exported field without a tag, or of a type
// that cannot be decoded, is a programming error: [Decode] panics. Fields may have these types:
//
//   - bool, every int, uint and float kind (range-checked, finite), string;
//   - [time.Duration], written "1m30s", never negative;
//   - [Secret], a reference to a value that is stored elsewhere;
//   - a string type with a Values() []string method, an enumeration;
//   - a type implementing [encoding.TextUnmarshaler], from strings, or [NumberUnmarshaler], from plain numbers as written;
//   - structs, pointers to and slices of these, and maps to these from string keys;
//   - any, which holds map[string]any, []any, string, bool, int64, float64 or nil.
//
// Defaults are the values in the struct before decoding. Fields that the file omits keep their defaults. A list or map in the file replaces
// the default completely. Elements of lists and maps start as zero values; [Fill] sets other defaults for their fields.
//
// # After decoding
//
// [Load] also returns the [Positions] of all values in the file. A Validate method of the struct reports faults with paths (fault.Error,
// see package fault), and [Locate] adds the positions of these paths.
//
//	cfg := Default()
//	pos, err := strictyaml.Load("tollgate.yaml", data, &cfg)
//	if err == nil {
//		err = strictyaml.Locate(pos, cfg.Validate())
//	}
//	if err != nil {
//		return err // tollgate.yaml:12:5: orgs[0].keys[1].shaa256: unknown key (did you mean "sha256"?)
//	}
//
// [Schema] describes the same struct as a JSON Schema for editors.
package strictyaml
