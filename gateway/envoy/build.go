package envoy

import (
	"errors"
	"fmt"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// builder packs messages into Any messages and keeps the first error.
type builder struct{ err error }

// pack returns m as an Any message.
func (b *builder) pack(m proto.Message) *anypb.Any {
	packed := new(anypb.Any)
	if err := anypb.MarshalFrom(packed, m, proto.MarshalOptions{Deterministic: true}); err != nil && b.err == nil {
		b.err = fmt.Errorf("pack %T: %w", m, err)
	}
	return packed
}

func seconds(n int64) *durationpb.Duration          { return &durationpb.Duration{Seconds: n} }
func duration(d time.Duration) *durationpb.Duration { return durationpb.New(d) }
func number(n uint32) *wrapperspb.UInt32Value       { return wrapperspb.UInt32(n) }
func fromADS() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}

func inline(pem []byte) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: pem}}
}

func fileSource(path string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: path}}
}

// validate runs the generated validators of the Envoy API on a message and on all messages packed in it.
func validate(m proto.Message) error {
	var errs []error
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		errs = append(errs, v.ValidateAll())
	}
	walk(m.ProtoReflect(), func(packed *anypb.Any) {
		inner, err := packed.UnmarshalNew()
		if err == nil {
			err = validate(inner)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", packed.GetTypeUrl(), err))
		}
	})
	return errors.Join(errs...)
}

// walk calls found for the messages packed in m, without descending into them.
func walk(m protoreflect.Message, found func(*anypb.Any)) {
	if packed, ok := m.Interface().(*anypb.Any); ok {
		found(packed)
		return
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.IsMap():
			if field.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
					walk(v.Message(), found)
					return true
				})
			}
		case field.Message() == nil:
		case field.IsList():
			for i := range v.List().Len() {
				walk(v.List().Get(i).Message(), found)
			}
		default:
			walk(v.Message(), found)
		}
		return true
	})
}
