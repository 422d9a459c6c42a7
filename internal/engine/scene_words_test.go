package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/engine"
)

// startOfScene is when a scene begins that does not say when it began.
var startOfScene = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// epoch is when the present scene began. Times within a day of it are written as the time since then.
var epoch = startOfScene

// word is one property of an object of type T, as a scene writes it: key=value, or only the key for a property that is
// on.
type word[T any] struct {
	key  string
	read func(*T, string) error
	// write returns the value, and false if the object does not have the property.
	write func(*T) (string, bool)
}

// vocabulary has the words of an object. Words that it does not know are amounts of resources, if there is a function
// for amounts.
type vocabulary[T any] struct {
	words   []word[T]
	amounts []amountWords[T]
}

// amountWords are the words for amounts of resources, as in cpu=4, or node:cpu=4 with the prefix node:.
type amountWords[T any] struct {
	prefix string
	// labels are names of any kind rather than resources.
	labels bool
	read   func(of *T, resource, value string) error
	write  func(of *T) map[string]string
}

// except returns the words without those for some names.
func (a amountWords[T]) except(left func(of *T, name string) bool) amountWords[T] {
	write := a.write
	a.write = func(of *T) map[string]string {
		out := write(of)
		maps.DeleteFunc(out, func(name, _ string) bool { return left(of, name) })
		return out
	}
	return a
}

// read applies the words to the object.
func (v vocabulary[T]) read(of *T, words []string) error {
	for _, text := range words {
		if err := v.readOne(of, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

func (v vocabulary[T]) readOne(of *T, text string) error {
	key, value, _ := strings.Cut(text, "=")
	for _, w := range v.words {
		if w.key == key {
			return w.read(of, unquoted(value))
		}
	}
	for _, a := range v.amounts {
		if name, ok := strings.CutPrefix(key, a.prefix); ok && (a.labels || isResource(name)) {
			if !a.labels {
				name = strings.TrimPrefix(name, "resource:")
			}
			return a.read(of, name, unquoted(value))
		}
	}
	return fmt.Errorf("there is no word %q", key)
}

// written returns the words of the object.
func (v vocabulary[T]) written(of *T) (out []string) {
	for _, w := range v.words {
		if value, has := w.write(of); has {
			out = append(out, joined(w.key, value))
		}
	}
	for _, a := range v.amounts {
		values := a.write(of)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			value := quoted(values[name])
			if a.labels || isResource(name) {
				out = append(out, a.prefix+name+"="+value)
			} else {
				out = append(out, a.prefix+"resource:"+name+"="+value)
			}
		}
	}
	return out
}

func joined(key, value string) string {
	if value == "" {
		return key
	}
	return key + "=" + quoted(value)
}

// isResource reports whether the word names a resource rather than a property. Resources with unusual names are written
// as resource:name.
func isResource(name string) bool {
	if strings.Contains(name, "resource:") {
		return true
	}
	name = name[strings.Index(name, ":")+1:]
	return strings.Contains(name, "/") || slices.Contains([]string{"cpu", "memory", "gpu", "tokens"}, name)
}

// fields returns the words of a line: they are separated by spaces that are not within double quotes.
func fields(line string) (out []string) {
	quotes, escaped := false, false
	current := ""
	for _, r := range line {
		switch {
		case escaped:
			escaped = false
		case r == '\\' && quotes:
			escaped = true
		case r == '"':
			quotes = !quotes
		case r == ' ' && !quotes:
			if current != "" {
				out = append(out, current)
			}
			current = ""
			continue
		}
		current += string(r)
	}
	if current != "" {
		out = append(out, current)
	}
	return out
}

// quoted returns the text in double quotes if it has spaces or quotes and is no JSON.
func quoted(text string) string {
	isJSON := strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")
	if !isJSON && strings.ContainsAny(text, " \"\\\n\t") {
		return strconv.Quote(text)
	}
	return text
}

func unquoted(text string) string {
	if plain, err := strconv.Unquote(text); err == nil {
		return plain
	}
	return text
}

// wordOf returns a word for a comparable value. The zero value is not written.
func wordOf[T any, V comparable](
	key string, at func(*T) *V, parse func(string) (V, error), format func(V) string,
) word[T] {
	return word[T]{key,
		func(of *T, text string) (err error) {
			*at(of), err = parse(text)
			return err
		},
		func(of *T) (string, bool) {
			var zero V
			value := *at(of)
			return format(value), value != zero
		}}
}

func text[T any](key string, at func(*T) *string) word[T] {
	return wordOf(key, at, func(s string) (string, error) { return s, nil }, func(s string) string { return s })
}

// toggle is a word without a value. key=no turns it off.
func toggle[T any](key string, at func(*T) *bool) word[T] {
	return wordOf(key, at, func(s string) (bool, error) { return s != "no", nil }, func(on bool) string {
		if on {
			return ""
		}
		return "no"
	})
}

func number[T any, N int32 | int64](key string, at func(*T) *N) word[T] {
	parse := func(s string) (N, error) {
		n, err := strconv.ParseInt(s, 10, 64)
		return N(n), err
	}
	return wordOf(key, at, parse, func(n N) string { return fmt.Sprint(n) })
}

// numberOr is a number that is not written if it is the usual one.
func numberOr[T any, N int32 | int64](usual N, key string, at func(*T) *N) word[T] {
	w := number(key, at)
	return word[T]{key, w.read, func(of *T) (string, bool) { return fmt.Sprint(*at(of)), *at(of) != usual }}
}

func duration[T any](key string, at func(*T) *time.Duration) word[T] {
	return wordOf(key, at, time.ParseDuration, func(d time.Duration) string { return d.String() })
}

func moment[T any](key string, at func(*T) *time.Time) word[T] {
	return wordOf(key, at, parseMoment, formatMoment)
}

func parseMoment(text string) (time.Time, error) {
	if text == "never" {
		return time.Time{}, nil
	}
	if after, err := time.ParseDuration(text); err == nil {
		return epoch.Add(after), nil
	}
	return time.Parse(time.RFC3339Nano, text)
}

func formatMoment(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	if after := at.Sub(epoch); after > -24*time.Hour && after < 24*time.Hour {
		return after.String()
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// choice is one of several names; the first one is the zero value.
func choice[T any, V ~int](key string, at func(*T) *V, names ...string) word[T] {
	parse := func(s string) (V, error) {
		if n := slices.Index(names, s); n >= 0 {
			return V(n), nil
		}
		return 0, fmt.Errorf("it is none of %q", names)
	}
	return wordOf(key, at, parse, func(v V) string { return names[v] })
}

// key is a word for a namespaced name, in the namespace ns if none is written.
func key[T any](name string, at func(*T) *engine.Key) word[T] {
	return wordOf(name, at, func(s string) (engine.Key, error) { return parseKey(s), nil }, formatKey)
}

func parseKey(text string) engine.Key {
	if namespace, name, ok := strings.Cut(text, "/"); ok {
		return engine.Key{Namespace: namespace, Name: name}
	}
	return engine.Key{Namespace: "ns", Name: text}
}

func formatKey(k engine.Key) string {
	if k.Namespace == "ns" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// list is a word for values that are separated by commas.
func list[T, V any](key string, at func(*T) *[]V, parse func(string) (V, error), format func(V) string) word[T] {
	return word[T]{key,
		func(of *T, text string) error {
			*at(of) = nil
			for part := range strings.SplitSeq(text, ",") {
				value, err := parse(part)
				if err != nil {
					return err
				}
				*at(of) = append(*at(of), value)
			}
			return nil
		},
		func(of *T) (string, bool) {
			var parts []string
			for _, value := range *at(of) {
				parts = append(parts, format(value))
			}
			return strings.Join(parts, ","), len(parts) > 0
		}}
}

// asJSON is a word for a value that has no words of its own.
func asJSON[T, V any](key string, at func(*T) *V) word[T] {
	return word[T]{key,
		func(of *T, text string) error { return json.Unmarshal([]byte(text), at(of)) },
		func(of *T) (string, bool) {
			text, err := json.Marshal(at(of))
			empty := err != nil || slices.Contains([]string{"null", "[]", "{}"}, string(text))
			return string(text), !empty
		}}
}

// labels are words for a map of labels, as in label:team=red.
func labels[T any](prefix string, at func(*T) *map[string]string) amountWords[T] {
	return amountWords[T]{prefix, true,
		func(of *T, name, value string) error {
			set(at(of), name, value)
			return nil
		},
		func(of *T) map[string]string { return maps.Clone(*at(of)) }}
}

// resources are words for amounts of resources, in the units of the engine: CPU in thousandths of a core.
func resources[T any](prefix string, at func(*T) *map[string]int64) amountWords[T] {
	return amountWords[T]{prefix, false,
		func(of *T, resource, value string) error {
			amount, err := strconv.ParseInt(value, 10, 64)
			set(at(of), resource, amount)
			return err
		},
		func(of *T) map[string]string {
			out := map[string]string{}
			for resource, amount := range *at(of) {
				out[resource] = fmt.Sprint(amount)
			}
			return out
		}}
}

// set stores the value in a map of its own, as the former map may be part of an event.
func set[V any](at *map[string]V, name string, value V) {
	*at = maps.Clone(*at)
	if *at == nil {
		*at = map[string]V{}
	}
	(*at)[name] = value
}
