package write

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/plain"
)

// makePlain escapes the control characters in all messages of the object's status, whichever planner wrote them: a
// message may repeat a name or an error with characters that the terminal of a kubectl user would obey. The conditions
// of a Workload are plain already, and the messages of its checks are their controllers'.
func makePlain(object client.Object) {
	if _, is := object.(*kueue.Workload); is {
		return
	}
	if status := reflect.ValueOf(object).Elem().FieldByName("Status"); status.IsValid() {
		makeMessagesPlain(status)
	}
}

func makeMessagesPlain(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			makeMessagesPlain(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			makeMessagesPlain(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Field(i)
			switch {
			case !field.CanSet():
			case field.Kind() == reflect.String && v.Type().Field(i).Name == "Message":
				field.SetString(plain.Text(field.String()))
			default:
				makeMessagesPlain(field)
			}
		}
	}
}
