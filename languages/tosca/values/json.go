package values

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"time"
)

// Plain makes what encoding/json can write of a value.
func Plain(v any) any {
	switch x := v.(type) {
	case []any:
		list := make([]any, len(x))
		for i, item := range x {
			list[i] = Plain(item)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(x))
		for k, item := range x {
			m[k] = Plain(item)
		}
		return m
	case []byte:
		return base64.StdEncoding.EncodeToString(x)
	case Quantity:
		return x.Text
	case Version:
		return x.Text
	case time.Time:
		return x.Format(time.RFC3339Nano)
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return formatFloat(x)
		}
	case Range:
		if x.High == math.MaxInt64 {
			return []any{x.Low, "UNBOUNDED"}
		}
		return []any{x.Low, x.High}
	case Unknown:
		return map[string]any{"unknown": true}
	case Text:
		return map[string]any{"unknown": true}
	}
	return v
}

// JSON writes a value as JSON.
func JSON(v any) []byte {
	data, err := json.Marshal(Plain(v))
	if err != nil {
		return []byte("null")
	}
	return data
}

// FromPlain makes a value of what JSON, YAML or XML-RPC decoders give.
func FromPlain(v any) any {
	switch x := v.(type) {
	case int:
		return int64(x)
	case int32:
		return int64(x)
	case uint64:
		if x <= math.MaxInt64 {
			return int64(x)
		}
		return float64(x)
	case float32:
		return float64(x)
	case json.Number:
		if i, err := x.Int64(); err == nil {
			return i
		}
		f, _ := x.Float64()
		return f
	case []any:
		list := make([]any, len(x))
		for i, item := range x {
			list[i] = FromPlain(item)
		}
		return list
	case []string:
		list := make([]any, len(x))
		for i, item := range x {
			list[i] = item
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(x))
		for k, item := range x {
			m[k] = FromPlain(item)
		}
		return m
	}
	return v
}
