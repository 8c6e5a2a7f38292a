package envoy

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// builder packs messages into Any messages. It keeps the first error, so that callers need to check only once.
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
	failed := protorange.Range(m.ProtoReflect(), func(at protopath.Values) error {
		last := at.Index(-1)
		if kind := last.Step.Kind(); kind != protopath.RootStep && kind != protopath.AnyExpandStep {
			return nil
		}
		v, ok := last.Value.Message().Interface().(interface{ ValidateAll() error })
		if !ok {
			return nil
		}
		err := v.ValidateAll()
		for _, step := range slices.Backward(at.Path) {
			if err != nil && step.Kind() == protopath.AnyExpandStep {
				err = fmt.Errorf("type.googleapis.com/%s: %w", step.MessageDescriptor().FullName(), err)
			}
		}
		errs = append(errs, err)
		return nil
	})
	return errors.Join(append(errs, failed)...)
}
