package jobs

import (
	"reflect"
	"time"
)

// Each child has a copy of a template, which a user may make as large as an object of the API server and have copied
// for thousands of children: ten thousand Jobs whose command has twenty thousand empty arguments, a text of 60 KB, take
// 3 GB of memory. A plan therefore has only as many children as take some megabytes, and the next plan, right after it,
// has more. A template of a few kilobytes is copied for more than a thousand children at once.

var typeOfTime = reflect.TypeFor[time.Time]()

// memoryOf returns about how many bytes the value refers to. What several parts of the value share counts once for each
// part.
func memoryOf(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			n = int(v.Elem().Type().Size()) + memoryOf(v.Elem())
		}
	case reflect.Slice:
		n = v.Len() * int(v.Type().Elem().Size())
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return n
		}
		for i := range v.Len() {
			n += memoryOf(v.Index(i))
		}
	case reflect.Map:
		n = 2 * v.Len() * int(v.Type().Key().Size()+v.Type().Elem().Size())
		for key, value := range v.Seq2() {
			n += memoryOf(key) + memoryOf(value)
		}
	case reflect.Struct:
		if v.Type() == typeOfTime {
			return 0 // its location is shared
		}
		for i := range v.NumField() {
			n += memoryOf(v.Field(i))
		}
	}
	return n
}
