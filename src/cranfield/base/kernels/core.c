/* The hot part of cranfield: parse, join, rank.
 *
 * One pass over the bytes of a run: split a line, compare its topic with the previous line's, hash
 * the document id once, look it up among the judged documents of the topic and among the documents
 * already seen (duplicates), and remember the score. When the topic ends, the judged documents are
 * ranked: for nothing where the scores descend, by sorting tie groups where only ties are in doubt, by
 * sorting the topic where the file is not in order. Nothing here knows what a measure is, and no id
 * ever becomes a Python object.
 *
 * twin.py states the same rules in Python; a test compares the two on mutated input. The GIL is
 * released while text is read. Plain C11 against the limited API of CPython 3.11.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { FIELDS = 8 };
enum { FAULT_NONE = 0, FAULT_COLUMNS = 1, FAULT_VALUE = 2, FAULT_DUPLICATE = 3, FAULT_BLANK = 4 };
enum { TIES_DESCENDING = 0, TIES_ASCENDING = 1, TIES_INPUT = 2 };
enum { TWICE_ERROR = 0, TWICE_FIRST = 1, TWICE_LAST = 2, TWICE_BEST = 3 };

/* ---- memory that grows ------------------------------------------------------------------ */

typedef struct {
    char *data;
    size_t used, room; /* bytes */
} Block;

static int reserve(Block *b, size_t more) {
    if (b->used + more <= b->room) return 1;
    size_t room = b->room ? b->room : 256;
    while (room < b->used + more) {
        if (room > SIZE_MAX / 2) return 0;
        room *= 2;
    }
    char *data = realloc(b->data, room);
    if (!data) return 0;
    b->data = data;
    b->room = room;
    return 1;
}

static int push(Block *b, const void *bytes, size_t n) {
    if (!reserve(b, n)) return 0;
    if (n) memcpy(b->data + b->used, bytes, n);
    b->used += n;
    return 1;
}

static void drop(Block *b) {
    free(b->data);
    memset(b, 0, sizeof *b);
}

static PyObject *bytes_of(const Block *b) {
    return PyBytes_FromStringAndSize(b->data ? b->data : "", (Py_ssize_t)b->used);
}

/* ---- hashing ---------------------------------------------------------------------------- */

static inline uint64_t load64(const char *p) {
    uint64_t x;
    memcpy(&x, p, 8);
    return x;
}

static inline uint32_t load32(const char *p) {
    uint32_t x;
    memcpy(&x, p, 4);
    return x;
}

static uint64_t seed[2]; /* drawn when the module is loaded, so that nobody can make ids that share their hash */

/* Both halves of a product in one word. */
static inline uint64_t folded(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX), left = (a >> 32) * (b & UINT32_MAX);
    uint64_t right = (a & UINT32_MAX) * (b >> 32), high = (a >> 32) * (b >> 32);
    uint64_t middle = left + (low >> 32) + (right & UINT32_MAX);
    return (middle << 32 | (low & UINT32_MAX)) ^ (high + (middle >> 32) + (right >> 32));
#endif
}

/* Two multiplications for an id of 16 bytes or fewer; one would do for most seeds, but some leave numbered ids in heaps. */
static inline uint64_t hash(const char *p, size_t n) {
    uint64_t h = seed[1] ^ n, a, b;
    if (n >= 8) {
        size_t left = n;
        for (; left > 16; left -= 16, p += 16) h = folded(load64(p) ^ seed[0], load64(p + 8) ^ h);
        a = load64(n > 16 ? p + left - 16 : p);
        b = load64(p + left - 8);
    } else if (n >= 4) {
        a = load32(p);
        b = load32(p + n - 4);
    } else {
        a = n ? (uint64_t)(uint8_t)p[0] << 16 | (uint64_t)(uint8_t)p[n / 2] << 8 | (uint8_t)p[n - 1] : 0;
        b = 0;
    }
    return folded(folded(a ^ seed[0], b ^ h), UINT64_C(0xD6E8FEB86659FD93));
}

#if defined(__GNUC__)
#define prefetch(address) __builtin_prefetch(address)
#else
#define prefetch(address) ((void)(address))
#endif

/* Whether two texts are the same; ids are short, and a call of memcmp costs as much as all this. */
static inline int same(const char *a, size_t n, const char *b, size_t m) {
    if (n != m) return 0;
    if (n >= 8) {
        uint64_t differ = load64(a + n - 8) ^ load64(b + n - 8);
        for (size_t i = 0; i + 8 < n; i += 8) differ |= load64(a + i) ^ load64(b + i);
        return !differ;
    }
    if (n >= 4) return !((load32(a) ^ load32(b)) | (load32(a + n - 4) ^ load32(b + n - 4)));
    return n == 0 || (a[0] == b[0] && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1]);
}

/* Distinct byte strings, numbered in the order of their first appearance. */
typedef struct {
    Block text;    /* the strings, one after the other */
    Block offsets; /* int64, one more than there are strings */
    uint64_t *slots;
    size_t mask, count;
} Names;

static inline int64_t name_at(const Names *s, size_t i) { return ((const int64_t *)s->offsets.data)[i]; }

static int names_grow(Names *s) {
    size_t room = s->slots ? (s->mask + 1) * 2 : 64;
    uint64_t *slots = calloc(room, sizeof *slots);
    if (!slots) return 0;
    for (size_t i = 0; i < s->count; i++) {
        uint64_t h = hash(s->text.data + name_at(s, i), (size_t)(name_at(s, i + 1) - name_at(s, i)));
        size_t slot = h & (room - 1);
        while (slots[slot]) slot = (slot + 1) & (room - 1);
        slots[slot] = (h & UINT64_C(0xFFFFFFFF00000000)) | (i + 1);
    }
    free(s->slots);
    s->slots = slots;
    s->mask = room - 1;
    return 1;
}

/* The number of a string; -1 if it is new and `add` is 0, -2 if memory ran out. */
static int32_t names_find(Names *s, const char *p, size_t n, int add) {
    if (!s->slots) {
        int64_t zero = 0;
        if (!add) return -1;
        if (!names_grow(s) || !push(&s->offsets, &zero, 8)) return -2;
    }
    uint64_t h = hash(p, n);
    size_t slot = h & s->mask;
    for (; s->slots[slot]; slot = (slot + 1) & s->mask) {
        if ((s->slots[slot] ^ h) >> 32) continue;
        size_t i = (size_t)(s->slots[slot] & UINT32_MAX) - 1;
        if (same(p, n, s->text.data + name_at(s, i), (size_t)(name_at(s, i + 1) - name_at(s, i)))) return (int32_t)i;
    }
    if (!add) return -1;
    if (s->count >= INT32_MAX - 1 || !push(&s->text, p, n)) return -2;
    int64_t end = (int64_t)s->text.used;
    if (!push(&s->offsets, &end, 8)) return -2;
    s->slots[slot] = (h & UINT64_C(0xFFFFFFFF00000000)) | (s->count + 1);
    s->count++;
    if (s->count * 2 > s->mask && !names_grow(s)) return -2;
    return (int32_t)(s->count - 1);
}

static void names_drop(Names *s) {
    drop(&s->text);
    drop(&s->offsets);
    free(s->slots);
    memset(s, 0, sizeof *s);
}

/* ---- lines ------------------------------------------------------------------------------ */

typedef struct {
    int fewest, most, topic, document, value, label; /* most < 0: any number; label < 0: none */
    int descending, finite, comments, blanks;
} Layout;

typedef struct {
    const char *at[FIELDS];
    uint32_t size[FIELDS];
    int count;
} Line;

static inline int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

/* Split a line that ends in \n; returns the start of the next one. */
static const char *split_plain(const char *p, Line *line) {
    line->count = 0;
    for (;;) {
        while (is_blank(*p)) p++;
        if (*p == '\n') return p + 1;
        const char *start = p;
        while (!is_blank(*p) && *p != '\n') p++;
        if (line->count < FIELDS) {
            line->at[line->count] = start;
            line->size[line->count] = (uint32_t)(p - start);
        }
        line->count++;
    }
}

#if defined(__SSE2__)
static inline uint64_t low_bytes(const char *p) {
    const __m128i space = _mm_set1_epi8(' ');
    uint64_t mask = 0;
    for (int i = 0; i < 4; i++) {
        __m128i v = _mm_loadu_si128((const __m128i *)(p + 16 * i));
        uint64_t m = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(v, space), v));
        mask |= m << (16 * i);
    }
    return mask;
}

/* As split_plain; 64 bytes may be read at once if they end before `safe`. */
static inline const char *split_line(const char *p, const char *safe, Line *line) {
    if (p + 64 > safe) return split_plain(p, line);
    uint64_t mask = low_bytes(p);
    unsigned start = 0;
    int count = 0;
    while (mask) {
        unsigned at = (unsigned)__builtin_ctzll(mask);
        mask &= mask - 1;
        char c = p[at];
        if (at > start) {
            if (count < FIELDS) {
                line->at[count] = p + start;
                line->size[count] = at - start;
            }
            count++;
        }
        start = at + 1;
        if (c == '\n') {
            line->count = count;
            return p + at + 1;
        }
        if (!is_blank(c)) break; /* a control character: part of an id, or of nonsense */
    }
    return split_plain(p, line);
}
#else
static inline const char *split_line(const char *p, const char *safe, Line *line) {
    (void)safe;
    return split_plain(p, line);
}
#endif

/* ---- numbers ---------------------------------------------------------------------------- */

static uint64_t five[28]; /* powers of five that fit 64 bits; filled when the module is loaded */
static const double ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

#if defined(__SIZEOF_INT128__)
typedef unsigned __int128 Wide;

static double rounded(Wide q, int sticky, int exponent) {
    int bits = (uint64_t)(q >> 64) ? 128 - __builtin_clzll((uint64_t)(q >> 64)) : 64 - __builtin_clzll((uint64_t)q);
    int cut = bits - 53;
    if (cut <= 0) return ldexp((double)(uint64_t)q, exponent);
    Wide rest = q & (((Wide)1 << cut) - 1), half = (Wide)1 << (cut - 1);
    uint64_t kept = (uint64_t)(q >> cut);
    if (rest > half || (rest == half && (sticky || (kept & 1)))) kept++;
    return ldexp((double)kept, exponent + cut);
}

/* digits * 10^power to the nearest double, exactly; 0 if out of this function's reach. */
static int scale(uint64_t digits, int power, double *out) {
    if (power >= -27 && power < 0) {
        int shift = __builtin_clzll(digits);
        Wide numerator = (Wide)(digits << shift) << 64;
        Wide q = numerator / five[-power];
        *out = rounded(q, numerator % five[-power] != 0, power - 64 - shift);
        return 1;
    }
    if (power >= 0 && power <= 27) {
        *out = rounded((Wide)digits * five[power], 0, power);
        return 1;
    }
    return 0;
}
#else
static int scale(uint64_t digits, int power, double *out) {
    (void)digits, (void)power, (void)out;
    return 0;
}
#endif

static int is_infinity(const char *p, size_t n) {
    static const char word[] = "infinity";
    if (n != 3 && n != 8) return 0;
    for (size_t i = 0; i < n; i++)
        if ((p[i] | 32) != word[i]) return 0;
    return 1;
}

/* Python's own correctly rounded conversion, for the few numbers that the quick ways cannot do. */
static int number_by_python(const char *p, size_t n, double *out, PyThreadState **saved) {
    char small[64], *text = n < sizeof small ? small : malloc(n + 1);
    if (!text) return 0;
    memcpy(text, p, n);
    text[n] = 0;
    if (*saved) PyEval_RestoreThread(*saved);
    *out = PyOS_string_to_double(text, NULL, NULL);
    int fine = !PyErr_Occurred();
    if (!fine) PyErr_Clear();
    if (*saved) *saved = PyEval_SaveThread();
    if (text != small) free(text);
    return fine;
}

#if FLT_EVAL_METHOD == 0 && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* The first n <= 8 of eight characters as digits, all at once; -1 if one is none. */
static inline int64_t digits_of(uint64_t v, unsigned n) {
    uint64_t zeros = UINT64_C(0x3030303030303030);
    v = n == 0 ? zeros : v << (64 - 8 * n) | (n == 8 ? 0 : zeros >> (8 * n));
    if (((v & UINT64_C(0xF0F0F0F0F0F0F0F0)) ^ zeros) |
        (((v + UINT64_C(0x0606060606060606)) & UINT64_C(0xF0F0F0F0F0F0F0F0)) ^ zeros))
        return -1;
    v -= zeros;
    v = v * 10 + (v >> 8);
    return (int64_t)(((v & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x000F424000000064) +
                      ((v >> 16) & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x0000271000000001)) >> 32);
}

static inline int64_t digits8(const char *p, unsigned n) { return digits_of(load64(p), n); }

/* The usual score, 1 to 7 digits, a point and 1 to 8 more; 16 bytes behind it may be read. 0: read it the long way. */
static inline int plain_number(const char *p, size_t n, double *out) {
    int negative = *p == '-';
    p += negative;
    n -= (size_t)negative;
    uint64_t points = load64(p) ^ UINT64_C(0x2E2E2E2E2E2E2E2E);
    points = (points - UINT64_C(0x0101010101010101)) & ~points & UINT64_C(0x8080808080808080);
    if (!points) return 0;
    unsigned whole = (unsigned)__builtin_ctzll(points) / 8;
    size_t rest = n - whole - 1;
    if (whole == 0 || whole >= n || rest == 0 || rest > 8) return 0;
    int64_t high = digits8(p, whole), low = digits8(p + whole + 1, (unsigned)rest);
    if ((high | low) < 0) return 0;
    double value = ((double)high * ten[rest] + (double)low) / ten[rest]; /* below 2^53: exact until the division */
    *out = negative ? -value : value;
    return 1;
}
#else
static inline int plain_number(const char *p, size_t n, double *out) {
    (void)p, (void)n, (void)out;
    return 0;
}
#endif

/* Read a decimal number to the nearest double. 1 if the whole text is one. */
static int number(const char *text, size_t n, double *out, PyThreadState **saved) {
    const char *p = text, *end = text + n;
    int negative = 0;
    if (p < end && (*p == '-' || *p == '+')) negative = *p++ == '-';
    const char *first = p;
    uint64_t digits = 0;
    int known = 0, power = 0, any = 0, plain = 1;
    for (; p < end && (unsigned)(*p - '0') < 10; p++) {
        any = 1;
        if (known < 19) {
            digits = digits * 10 + (unsigned)(*p - '0');
            known += digits != 0;
        } else {
            plain = 0;
        }
    }
    if (p < end && *p == '.') {
        for (p++; p < end && (unsigned)(*p - '0') < 10; p++) {
            any = 1;
            if (known < 19) {
                digits = digits * 10 + (unsigned)(*p - '0');
                known += digits != 0;
                if (power > -100000) power--;
            } else if (*p != '0') {
                plain = 0;
            }
        }
    }
    if (!any) {
        if (!is_infinity(first, (size_t)(end - first))) return 0;
        *out = negative ? -HUGE_VAL : HUGE_VAL;
        return 1;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        int minus = 0, exponent = 0;
        p++;
        if (p < end && (*p == '-' || *p == '+')) minus = *p++ == '-';
        if (p == end) return 0;
        for (; p < end && (unsigned)(*p - '0') < 10; p++)
            if (exponent < 100000) exponent = exponent * 10 + (*p - '0');
        power += minus ? -exponent : exponent;
    }
    if (p != end) return 0;
    double value;
    if (plain && digits == 0) {
        value = 0;
#if FLT_EVAL_METHOD == 0
    } else if (plain && digits <= UINT64_C(1) << 53 && power >= -22 && power <= 22) {
        value = power < 0 ? (double)digits / ten[-power] : (double)digits * ten[power];
#endif
    } else if (!(plain && scale(digits, power, &value))) {
        return number_by_python(text, n, out, saved);
    }
    *out = negative ? -value : value;
    return 1;
}

/* Why a line cannot be used, or FAULT_NONE and its value. */
static inline int read_line(
    const Line *line, const Layout *layout, const char *safe, double *value, PyThreadState **saved) {
    if (line->count < layout->fewest || (layout->most >= 0 && line->count > layout->most))
        return line->count ? FAULT_COLUMNS : FAULT_BLANK;
    const char *text = line->at[layout->value];
    size_t size = line->size[layout->value];
    int near_end = !safe || safe - text < (ptrdiff_t)size + 16;
    if ((near_end || !plain_number(text, size, value)) && !number(text, size, value, saved)) return FAULT_VALUE;
    if (layout->finite && isinf(*value)) return FAULT_VALUE;
    if (!layout->descending) *value = -*value;
    return FAULT_NONE;
}

/* The lines of a stretch of a buffer. A last line without \n is copied so that all lines end in one. */
typedef struct {
    const char *base, *next, *stop;
    const char *safe; /* where the bytes end that may be read ahead; NULL in the copied last line */
    char *tail;
    const char *tail_from;
} Reader;

static int reader_open(Reader *r, const char *base, int64_t start, int64_t stop) {
    r->base = base;
    r->next = base + start;
    r->stop = r->safe = base + stop;
    r->tail = NULL;
    r->tail_from = NULL;
    const char *last = r->stop;
    while (last > r->next && last[-1] != '\n') last--;
    if (last < r->stop) {
        size_t n = (size_t)(r->stop - last);
        r->tail = malloc(n + 1);
        if (!r->tail) return 0;
        memcpy(r->tail, last, n);
        r->tail[n] = '\n';
        r->tail_from = last;
        r->stop = last;
    }
    return 1;
}

/* The next line that is neither a comment nor blank (or blank where that is a fault); 0 at the end. */
static inline int reader_line(Reader *r, const Layout *layout, Line *line, int64_t *offset) {
    for (;;) {
        int last = r->next >= r->stop;
        if (last && !r->tail_from) return 0;
        const char *p = last ? r->tail : r->next;
        *offset = last ? r->tail_from - r->base : p - r->base;
        if (last) r->tail_from = r->safe = NULL;
        if (*p == '#' && layout->comments) {
            if (!last) r->next = (const char *)memchr(p, '\n', (size_t)(r->stop - p)) + 1;
            continue;
        }
        const char *after = split_line(p, last ? p : r->stop, line);
        if (!last) r->next = after;
        if (line->count || !(layout->blanks || last)) return 1;
    }
}

/* ---- the index of judged documents ------------------------------------------------------ */

typedef struct {
    Names topics;
    Block text;        /* document ids */
    int64_t *offsets;  /* rows + 1 */
    uint64_t *slots;   /* every topic's table, one after the other */
    int64_t *table;    /* where each topic's table starts */
    uint64_t *mask;    /* its size less one */
    uint64_t *filter;  /* bits of the hashes in every topic's table, one topic's after the other's */
    int64_t *sieve;    /* where each topic's bits start */
    uint64_t *holes;   /* how many words they are, less one */
    int64_t *rows;     /* the first row of each topic; rows are grouped by topic */
    char *again;       /* whether a row names a document that an earlier row of its topic names */
    int64_t size;      /* rows in all */
} Index;

static void index_free(Index *x) {
    if (!x) return;
    names_drop(&x->topics);
    drop(&x->text);
    free(x->offsets);
    free(x->slots);
    free(x->table);
    free(x->mask);
    free(x->filter);
    free(x->sieve);
    free(x->holes);
    free(x->rows);
    free(x->again);
    free(x);
}

static inline int32_t index_find(const Index *x, int32_t topic, const char *p, size_t n, uint64_t h) {
    const uint64_t *slots = x->slots + x->table[topic];
    uint64_t mask = x->mask[topic];
    for (size_t slot = h & mask; slots[slot]; slot = (slot + 1) & mask) {
        if ((slots[slot] ^ h) >> 32) continue;
        int64_t row = (int64_t)(slots[slot] & UINT32_MAX) - 1;
        if (same(p, n, x->text.data + x->offsets[row], (size_t)(x->offsets[row + 1] - x->offsets[row])))
            return (int32_t)row;
    }
    return -1;
}

/* ---- one topic of a run ----------------------------------------------------------------- */

typedef struct {
    int ties, single, twice, drop_self;
    const char *collapse;
    size_t collapse_size;
} Order;

/* A score: a whole number of units of the topic's last decimal, or a double. A zero has no sign, so equal scores have equal bits. */
typedef union {
    int64_t whole;
    double real;
} Score;

typedef struct {
    uint32_t at; /* in the topic's columns */
    int32_t row; /* of the index */
} Judged;

typedef struct {
    uint64_t key; /* the smaller, the earlier */
    uint32_t at;
} Place;

/* A document that is compared by its id. */
typedef struct {
    double score;
    const char *document;
    uint64_t place; /* in the order given, which decides ties=input */
    uint32_t size;
    int32_t row; /* of the index; -1: not judged */
} Answer;

/* The documents of a topic in columns, as they came. What depends on the others (is one there twice, is it judged, what is
 * its rank) is found out when the topic ends, a column at a time. */
typedef struct {
    Order order;
    size_t count, room;
    const char **document;
    uint32_t *size;
    uint64_t *hash;
    Score *score;
    int32_t *row;       /* of the index, or -1; filled where scores tie or rise */
    int decimals;       /* of the whole numbers; REAL: scores are doubles; NONE: there are none yet */
    int sorted, strict; /* scores never rise; they fall every time: known when the topic ends */
    uint64_t near;      /* whole numbers no farther apart than this, which is 0 as a rule, may be one double */
    const char *twice;  /* a document that stands there already, where that is an error */
    uint64_t *bits;     /* a Bloom filter of the hashes: two bits each, in one word */
    size_t words;
    Block judged;       /* Judged, as they came */
    Block places, turn; /* Place: the documents by score, and room to sort them */
    Block group;        /* Answer: the documents of one score */
    Block hits;         /* five int32 each: topic, row, rank, first, last */
    Block single;       /* the same for hits that tie with more documents as 32-bit floats: where they would stand then */
} Topic;

enum { REAL = -1, NONE = -2, DECIMALS = 18 };

static void topic_start(Topic *t) {
    t->count = 0;
    t->twice = NULL;
    t->decimals = NONE;
}

static int grow_column(void *column, size_t bytes) {
    void *old, *larger;
    memcpy(&old, column, sizeof old);
    larger = realloc(old, bytes);
    if (larger) memcpy(column, &larger, sizeof larger);
    return larger != NULL;
}

static int topic_grow(Topic *t) {
    size_t room = t->room ? t->room * 2 : 1024;
    if (room > UINT32_MAX / 2) return 0;
    int fine = grow_column(&t->document, room * sizeof *t->document) && grow_column(&t->size, room * sizeof *t->size) &&
               grow_column(&t->hash, room * sizeof *t->hash) && grow_column(&t->score, room * sizeof *t->score) &&
               grow_column(&t->row, room * sizeof *t->row);
    if (fine) t->room = room;
    return fine;
}

static double real_of(int64_t whole, int decimals) {
    uint64_t digits = whole < 0 ? (uint64_t)0 - (uint64_t)whole : (uint64_t)whole;
    double value = (double)digits / ten[decimals];
    if (digits > UINT64_C(1) << 53) scale(digits, -decimals, &value);
    return whole < 0 ? -value : value;
}

/* Turn the scores into doubles, or what singles make of them. */
static void topic_real(Topic *t) {
    Score *s = t->score;
    if (t->decimals >= 0)
        for (size_t i = 0; i < t->count; i++) s[i].real = real_of(s[i].whole, t->decimals);
    if (t->order.single)
        for (size_t i = 0; i < t->count; i++) s[i].real = (double)(float)s[i].real;
    t->decimals = REAL;
}

/* See whether the scores fall. Whole numbers in sums and signs alone, which every processor does several at a time. */
static void topic_look(Topic *t) {
    const Score *s = t->score;
    size_t n = t->count;
    uint64_t size = 0, rises = 0, level = 0;
    if (t->decimals >= 0) {
        for (size_t i = 0; i < n; i++) size |= (uint64_t)s[i].whole;
        for (size_t i = 1; i < n; i++) {
            uint64_t fall = (uint64_t)s[i - 1].whole - (uint64_t)s[i].whole;
            rises |= fall;
            level |= fall - 1; /* below 0 where it is 0 */
        }
        if (size >> 63) /* a negative score */
            for (size_t i = size = 0; i < n; i++) size |= (uint64_t)(s[i].whole ^ s[i].whole >> 63);
        rises >>= 63;
        level >>= 63;
    } else {
        for (size_t i = 1; i < n; i++) {
            rises |= s[i].real > s[i - 1].real;
            level |= s[i].real == s[i - 1].real;
        }
    }
    t->sorted = !rises;
    t->strict = !rises && !level;
    t->near = size >> 51;
}

/* Add a document, whatever the conventions. Returns 0 when memory ran out. */
static int topic_add(Topic *t, const char *name, size_t name_size, const char *document, size_t size, double score) {
    const Order *order = &t->order;
    if (order->collapse_size)
        for (size_t i = 0; i + order->collapse_size <= size; i++)
            if (memcmp(document + i, order->collapse, order->collapse_size) == 0) {
                size = i;
                break;
            }
    if (order->drop_self && same(document, size, name, name_size)) return 1;
    if (t->decimals != REAL) topic_real(t);
    size_t n = t->count;
    if (n >= t->room && !topic_grow(t)) return 0;
    score = (order->single ? (double)(float)score : score) + 0.0;
    t->document[n] = document;
    t->size[n] = (uint32_t)size;
    t->hash[n] = hash(document, size);
    t->score[n].real = score;
    t->count = n + 1;
    return 1;
}

static inline int same_document(const Topic *t, size_t i, size_t j) {
    return t->hash[i] == t->hash[j] && same(t->document[i], t->size[i], t->document[j], t->size[j]);
}

/* Whether no document stands there twice: bits first, and for the few that share theirs all that came before. 0 also where
 * too many share bits for that to be quick. */
static int surely_once(Topic *t) {
    size_t words = 64, doubtful = 0;
    while (words < t->count / 2) words *= 2;
    if (words > t->words) {
        if (!grow_column(&t->bits, words * sizeof *t->bits)) return 0;
        t->words = words;
    }
    memset(t->bits, 0, words * sizeof *t->bits);
    for (size_t i = 0; i < t->count; i++) {
        uint64_t h = t->hash[i], two = UINT64_C(1) << (h & 63) | UINT64_C(1) << (h >> 6 & 63);
        uint64_t *word = t->bits + (h >> 12 & (words - 1)), before = *word;
        *word = before | two;
        if ((before & two) != two) continue;
        if (++doubtful > 64) return 0;
        for (size_t j = 0; j < i; j++)
            if (same_document(t, i, j)) return 0;
    }
    return 1;
}

/* Keep one of each document, the one that the rule says, in the place of the first. Returns 0 when memory ran out. */
static int keep_one_of_each(Topic *t) {
    size_t room = 1024, kept = 0;
    int rule = t->order.collapse_size ? TWICE_BEST : t->order.twice;
    while (room < t->count * 2) room *= 2;
    uint32_t *seen = calloc(room, sizeof *seen);
    if (!seen) return 0;
    if (t->decimals != REAL) topic_real(t);
    for (size_t i = 0; i < t->count; i++) {
        size_t slot = t->hash[i] & (room - 1);
        while (seen[slot] && !same_document(t, i, seen[slot] - 1)) slot = (slot + 1) & (room - 1);
        if (seen[slot]) {
            Score *old = t->score + seen[slot] - 1;
            if (rule == TWICE_ERROR && !t->twice) t->twice = t->document[i];
            if (rule == TWICE_LAST || (rule == TWICE_BEST && t->score[i].real > old->real)) *old = t->score[i];
            continue;
        }
        t->document[kept] = t->document[i];
        t->size[kept] = t->size[i];
        t->hash[kept] = t->hash[i];
        t->score[kept] = t->score[i];
        seen[slot] = (uint32_t)++kept;
    }
    free(seen);
    t->count = kept;
    return 1;
}

/* Find the judged documents: most others lack the bit of their hash. Returns 0 when memory ran out. */
static int topic_join(Topic *t, const Index *x, int32_t topic) {
    const uint64_t *filter = x->filter + x->sieve[topic], *slots = x->slots + x->table[topic];
    uint64_t holes = x->holes[topic], mask = x->mask[topic];
    size_t likely = 0, judged = 0;
    t->judged.used = 0;
    if (!reserve(&t->judged, (t->count + 1) * sizeof(Judged))) return 0;
    Judged *j = (Judged *)t->judged.data;
    for (size_t i = 0; i < t->count; i++) {
        uint64_t h = t->hash[i];
        j[likely].at = (uint32_t)i;
        likely += filter[h >> 32 & holes] >> (h >> 26 & 63) & 1;
    }
    for (size_t i = 0; i < likely; i++) prefetch(slots + (t->hash[j[i].at] & mask));
    for (size_t i = 0; i < likely; i++) {
        uint32_t at = j[i].at;
        int32_t row = index_find(x, topic, t->document[at], t->size[at], t->hash[at]);
        if (row < 0) continue;
        j[judged].at = at;
        j[judged++].row = row;
    }
    t->judged.used = judged * sizeof(Judged);
    return 1;
}

/* A number that is the smaller, the higher the score. */
static inline uint64_t key_of(Score score, int real) {
    uint64_t bits = (uint64_t)score.whole, sign = UINT64_C(1) << 63;
    return ~(real && (bits & sign) ? ~bits : bits ^ sign);
}

/* The documents by score, best first, equal ones as they came: a radix sort over the bytes that differ. NULL: no memory. */
static const Place *topic_sort(Topic *t) {
    size_t n = t->count;
    t->places.used = t->turn.used = 0;
    if (!reserve(&t->places, n * sizeof(Place)) || !reserve(&t->turn, n * sizeof(Place))) return NULL;
    Place *from = (Place *)t->places.data, *to = (Place *)t->turn.data;
    uint64_t differ = 0;
    for (size_t i = 0; i < n; i++) {
        from[i].key = key_of(t->score[i], t->decimals == REAL);
        from[i].at = (uint32_t)i;
        differ |= from[i].key ^ from[0].key;
    }
    for (int shift = 0; shift < 64; shift += 8) {
        if (!(differ >> shift & 255)) continue;
        size_t start[256] = {0}, sum = 0;
        for (size_t i = 0; i < n; i++) start[from[i].key >> shift & 255]++;
        for (size_t b = 0; b < 256; b++) {
            size_t many = start[b];
            start[b] = sum;
            sum += many;
        }
        for (size_t i = 0; i < n; i++) to[start[from[i].key >> shift & 255]++] = from[i];
        Place *other = from;
        from = to;
        to = other;
    }
    return from;
}

/* Whether two scores that are different whole numbers may be one double. */
static int topic_vague(const Topic *t, const Place *order) {
    int vague = 0;
    for (size_t i = 1; t->near && t->decimals >= 0 && i < t->count; i++) {
        int64_t fall = t->score[order ? order[i - 1].at : i - 1].whole - t->score[order ? order[i].at : i].whole;
        vague |= fall != 0 && (uint64_t)fall <= 2 * t->near;
    }
    return vague;
}

static inline int by_id(const Answer *a, const Answer *b) {
    size_t n = a->size < b->size ? a->size : b->size;
    int order = memcmp(a->document, b->document, n);
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

static int compare_ascending(const void *a, const void *b) { return by_id(a, b); }
static int compare_descending(const void *a, const void *b) { return by_id(b, a); }

static inline int add_hit(Block *hits, int32_t topic, int32_t row, size_t rank, size_t first, size_t last) {
    int32_t hit[5] = {topic, row, (int32_t)rank, (int32_t)first, (int32_t)last};
    return push(hits, hit, sizeof hit);
}

/* Put the documents in the order of their scores; `order` is NULL where they came so. Returns 0 when memory ran out. */
static int topic_order(Topic *t, const Place **order) {
    for (;;) {
        topic_look(t);
        *order = NULL;
        if (!t->sorted && !(*order = topic_sort(t))) return 0;
        if (!topic_vague(t, *order)) return 1;
        topic_real(t); /* which is never vague */
    }
}

/* Gather the documents at the places start to stop, which have one score, in the order that the rule for ties says; `order` says
 * which stands where, NULL: as they came. Returns 0 when memory ran out. */
static int group_sorted(Topic *t, const Place *order, size_t start, size_t stop) {
    t->group.used = 0;
    if (!reserve(&t->group, (stop - start) * sizeof(Answer))) return 0;
    Answer *group = (Answer *)t->group.data;
    for (size_t i = start; i < stop; i++) {
        size_t at = order ? order[i].at : i;
        group[i - start] = (Answer){.document = t->document[at], .size = t->size[at], .place = at};
    }
    if (stop - start > 1 && t->order.ties != TIES_INPUT)
        qsort(group, stop - start, sizeof *group, t->order.ties == TIES_ASCENDING ? compare_ascending : compare_descending);
    return 1;
}

/* The same where the scores fall: only the neighbours of judged documents are looked at. Returns 0 when memory ran out. */
static int ranks_of_sorted(Topic *t, int32_t topic) {
    const Judged *j = (const Judged *)t->judged.data;
    const Score *s = t->score;
    size_t judged = t->judged.used / sizeof(Judged);
    for (size_t i = 0, next; i < judged; i = next) {
        size_t start = j[i].at, stop = start + 1;
        while (start > 0 && s[start - 1].whole == s[start].whole) start--;
        while (stop < t->count && s[stop].whole == s[start].whole) stop++;
        next = i + 1;
        if (stop - start == 1) {
            add_hit(&t->hits, topic, j[i].row, stop, stop, stop);
            continue;
        }
        memset(t->row + start, -1, (stop - start) * sizeof *t->row);
        for (next = i; next < judged && j[next].at < stop; next++) t->row[j[next].at] = j[next].row;
        if (!group_sorted(t, NULL, start, stop)) return 0;
        const Answer *group = (const Answer *)t->group.data;
        for (size_t k = start; k < stop; k++) {
            int32_t row = t->row[group[k - start].place];
            if (row >= 0) add_hit(&t->hits, topic, row, k + 1, start + 1, stop);
        }
    }
    return 1;
}

/* The score at a place in the order of scores as a 32-bit float. */
static inline float single_at(const Topic *t, const Place *order, size_t place) {
    size_t at = order ? order[place].at : place;
    return (float)(t->decimals >= 0 ? real_of(t->score[at].whole, t->decimals) : t->score[at].real);
}

/* The row of the judged document that came at a place, or -1. */
static int32_t judged_row(const Topic *t, uint64_t at) {
    const Judged *j = (const Judged *)t->judged.data;
    size_t low = 0, high = t->judged.used / sizeof(Judged), n = high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (j[middle].at < at) low = middle + 1; else high = middle;
    }
    return low < n && j[low].at == at ? j[low].row : -1;
}

/* Where the hits from byte `before` on would stand among the documents whose scores equal theirs as 32-bit floats, if these
 * are more than those that tie. Only the neighbours of hits are looked at. Returns 0 when memory ran out. */
static int topic_single(Topic *t, const Place *order, int32_t topic, size_t before) {
    const int32_t(*hits)[5] = (const int32_t(*)[5])(t->hits.data + before);
    size_t count = (t->hits.used - before) / sizeof *hits, done = 0;
    for (size_t i = 0; i < count; i++) {
        size_t start = (size_t)hits[i][3] - 1, stop = (size_t)hits[i][4], from = start, to = stop;
        if (start < done) continue;
        float own = single_at(t, order, start);
        while (from > 0 && single_at(t, order, from - 1) == own) from--;
        while (to < t->count && single_at(t, order, to) == own) to++;
        if (from == start && to == stop) continue;
        done = to;
        if (!group_sorted(t, order, from, to)) return 0;
        const Answer *group = (const Answer *)t->group.data;
        for (size_t k = from; k < to; k++) {
            int32_t row = judged_row(t, group[k - from].place);
            if (row >= 0 && !add_hit(&t->single, topic, row, k + 1, from + 1, to)) return 0;
        }
    }
    return 1;
}

/* The ranks of the judged documents in an order. Returns 0 when memory ran out. */
static int topic_ranks(Topic *t, const Place *order, int32_t topic) {
    size_t n = t->count, judged = t->judged.used / sizeof(Judged);
    const Judged *j = (const Judged *)t->judged.data;
    if (t->strict) {
        for (size_t i = 0; i < judged; i++) add_hit(&t->hits, topic, j[i].row, j[i].at + 1, j[i].at + 1, j[i].at + 1);
        return 1;
    }
    if (!order) return ranks_of_sorted(t, topic);
    memset(t->row, -1, n * sizeof *t->row);
    for (size_t i = 0; i < judged; i++) t->row[j[i].at] = j[i].row;
    for (size_t start = 0, stop; start < n; start = stop) {
        size_t at = order ? order[start].at : start;
        int any = t->row[at] >= 0;
        for (stop = start + 1; stop < n; stop++) {
            size_t next = order ? order[stop].at : stop;
            if (t->score[next].whole != t->score[at].whole) break;
            any |= t->row[next] >= 0;
        }
        if (!any) continue;
        if (stop - start == 1) {
            add_hit(&t->hits, topic, t->row[at], stop, stop, stop);
            continue;
        }
        if (!group_sorted(t, order, start, stop)) return 0;
        const Answer *group = (const Answer *)t->group.data;
        for (size_t i = start; i < stop; i++) {
            int32_t row = t->row[group[i - start].place];
            if (row >= 0) add_hit(&t->hits, topic, row, i + 1, start + 1, stop);
        }
    }
    return 1;
}

/* Rank the topic's judged documents and append them to the hits. Returns 0 when memory ran out. */
static int topic_finish(Topic *t, const Index *x, int32_t topic) {
    if (t->order.single && t->decimals != REAL) topic_real(t);
    if ((t->order.collapse_size || !surely_once(t)) && !keep_one_of_each(t)) return 0;
    if (!topic_join(t, x, topic)) return 0;
    size_t judged = t->judged.used / sizeof(Judged), before = t->hits.used;
    if (!judged) return 1;
    if (!reserve(&t->hits, judged * 5 * sizeof(int32_t))) return 0;
    const Place *order;
    if (!topic_order(t, &order) || !topic_ranks(t, order, topic)) return 0;
    return t->order.single || t->order.ties == TIES_INPUT || topic_single(t, order, topic, before);
}

/* The best documents of topics, as columns. */
typedef struct {
    size_t depth;
    Block topic, rank, score, text, offsets; /* int32, int32, double; bytes and where they end */
} Tops;

static int add_top(Tops *tops, const Topic *t, int32_t topic, size_t at, size_t rank) {
    int32_t place = (int32_t)rank;
    double score = t->decimals >= 0 ? real_of(t->score[at].whole, t->decimals) : t->score[at].real;
    if (!push(&tops->topic, &topic, 4) || !push(&tops->rank, &place, 4) || !push(&tops->score, &score, 8) ||
        !push(&tops->text, t->document[at], t->size[at]))
        return 0;
    int64_t end = (int64_t)tops->text.used;
    return push(&tops->offsets, &end, 8);
}

/* Append the topic's best documents. Returns 0 when memory ran out. */
static int topic_top(Topic *t, int32_t topic, Tops *tops) {
    const Place *order;
    if (!topic_order(t, &order)) return 0;
    size_t n = t->count, last = n < tops->depth ? n : tops->depth;
    for (size_t start = 0, stop; start < last; start = stop) {
        size_t at = order ? order[start].at : start;
        stop = start + 1;
        while (stop < n && t->score[order ? order[stop].at : stop].whole == t->score[at].whole) stop++;
        if (!group_sorted(t, order, start, stop)) return 0;
        const Answer *group = (const Answer *)t->group.data;
        for (size_t i = start; i < stop && i < last; i++)
            if (!add_top(tops, t, topic, group[i - start].place, i + 1)) return 0;
    }
    return 1;
}

static void tops_drop(Tops *tops) {
    Block *blocks[] = {&tops->topic, &tops->rank, &tops->score, &tops->text, &tops->offsets};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) drop(blocks[i]);
}

static void topic_drop(Topic *t) {
    Block *blocks[] = {&t->judged, &t->places, &t->turn, &t->group, &t->hits, &t->single};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) drop(blocks[i]);
    free(t->document);
    free(t->size);
    free(t->hash);
    free(t->score);
    free(t->row);
    free(t->bits);
}

/* ---- usual lines ------------------------------------------------------------------------ */

#if defined(__SSE2__) && defined(__SIZEOF_INT128__) && FLT_EVAL_METHOD == 0
#define QUICK 1

/* 64 bytes at a glance: a bit for each that is a blank or below, and for each that is the blank wanted. */
typedef struct {
    uint64_t low, blank;
} Glance;

static const int64_t power_of_ten[] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000, 100000000000,
    1000000000000, 10000000000000, 100000000000000, 1000000000000000, 10000000000000000, 100000000000000000,
    1000000000000000000};

/* A score of at most 18 digits as a whole number with so many decimals; 16 bytes behind it may be read. 0: read it the long way. */
static inline int whole_number(const char *p, size_t n, int64_t *whole, int *decimals) {
    int negative = *p == '-';
    p += negative;
    n -= (size_t)negative;
    uint64_t points = load64(p) ^ UINT64_C(0x2E2E2E2E2E2E2E2E);
    points = (points - UINT64_C(0x0101010101010101)) & ~points & UINT64_C(0x8080808080808080);
    size_t before = points ? (size_t)__builtin_ctzll(points) / 8 : 8;
    if (before >= n) { /* no point */
        if (n == 0 || n > 8) return 0;
        int64_t high = digits8(p, (unsigned)n);
        *whole = negative ? -high : high;
        *decimals = 0;
        return high >= 0;
    }
    size_t rest = n - before - 1;
    if (before == 0 || before > 7 || rest == 0 || rest + before > 18 || rest > 16) return 0;
    *decimals = (int)rest;
    if (before + rest <= 8) { /* close the gap where the point stands */
        uint64_t left = ~UINT64_C(0) >> (64 - 8 * before);
        int64_t value = digits_of((load64(p) & left) | (load64(p + 1) & ~left), (unsigned)(before + rest));
        *whole = negative ? -value : value;
        return value >= 0;
    }
    int64_t high = digits8(p, (unsigned)before), low = digits8(p + before + 1, rest < 8 ? (unsigned)rest : 8), more = 0;
    if (rest > 8) {
        more = digits8(p + before + 9, (unsigned)rest - 8);
        low = low * power_of_ten[rest - 8] + more;
    }
    if ((high | low | more) < 0) return 0;
    int64_t value = high * power_of_ten[rest] + low;
    *whole = negative ? -value : value;
    return 1;
}

/* Count the topic's scores in units of more decimals; as doubles where they would not fit. */
static void topic_decimals(Topic *t, int decimals) {
    int more = decimals - t->decimals;
    int64_t most = INT64_MAX / 2 / power_of_ten[more];
    for (size_t i = 0; i < t->count; i++)
        if (t->score[i].whole > most || t->score[i].whole < -most) {
            topic_real(t);
            return;
        }
    for (size_t i = 0; i < t->count; i++) t->score[i].whole *= power_of_ten[more];
    t->decimals = decimals;
}

/* Add a document whose score is a whole number of units of some decimals. Returns 0 when memory ran out. */
static int topic_add_whole(Topic *t, const char *document, size_t size, int64_t whole, int decimals) {
    if (t->decimals == NONE) t->decimals = decimals;
    if (t->decimals >= 0 && decimals > t->decimals) topic_decimals(t, decimals);
    int64_t most = t->decimals >= decimals ? INT64_MAX / 2 / power_of_ten[t->decimals - decimals] : 0;
    if (t->decimals >= 0 && (whole > most || whole < -most)) topic_real(t);
    if (t->decimals == REAL) return topic_add(t, NULL, 0, document, size, real_of(whole, decimals));
    size_t n = t->count;
    if (n >= t->room && !topic_grow(t)) return 0;
    t->document[n] = document;
    t->size[n] = (uint32_t)size;
    t->hash[n] = hash(document, size);
    t->score[n].whole = whole * power_of_ten[t->decimals - decimals];
    t->count = n + 1;
    return 1;
}

static inline Glance glance_sse2(const char *p, char wanted) {
    Glance g = {0, 0};
    const __m128i space = _mm_set1_epi8(' '), blank = _mm_set1_epi8(wanted);
    for (int i = 0; i < 4; i++) {
        __m128i v = _mm_loadu_si128((const __m128i *)(p + 16 * i));
        g.low |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(v, space), v)) << (16 * i);
        g.blank |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v, blank)) << (16 * i);
    }
    return g;
}

#define USUAL_LINES usual_lines_sse2
#define GLANCE glance_sse2
#define TARGET
#include "usual.h"

#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))

static inline AVX2 Glance glance_avx2(const char *p, char wanted) {
    Glance g = {0, 0};
    const __m256i space = _mm256_set1_epi8(' '), blank = _mm256_set1_epi8(wanted);
    for (int i = 0; i < 2; i++) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(p + 32 * i));
        g.low |= (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(v, space), v)) << (32 * i);
        g.blank |= (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, blank)) << (32 * i);
    }
    return g;
}

#undef USUAL_LINES
#undef GLANCE
#undef TARGET
#define USUAL_LINES usual_lines_avx2
#define GLANCE glance_avx2
#define TARGET AVX2
#include "usual.h"
#endif

typedef const char *(*UsualLines)(Topic *, const char *, const char *, const char *, size_t, int, const char **, size_t *);
static UsualLines usual_lines = usual_lines_sse2; /* or what the processor knows better; chosen when the module is loaded */
#endif

/* ---- scanning text ---------------------------------------------------------------------- */

typedef struct {
    int64_t start, stop; /* bytes */
    int64_t hits;        /* how many */
    int32_t topic, retrieved;
} Segment;

typedef struct {
    const Index *index;
    Layout layout;
    Topic topic;
    const char *base; /* the buffer */
    int64_t size, tail_at; /* its bytes, and where its last line starts if that was copied */
    Tops *tops;            /* not hits but the best documents are wanted, of every topic */
    int doubt;             /* a topic in two places, or a document twice: the tops are to be found in another way */
    int lenient, quick;
    Block segments; /* Segment */
    Block skipped;  /* int64 pairs: offset, fault */
    Names others;
    int64_t fault_at, twice_at;
    int fault;
    char *tag;
    size_t tag_size;
    PyThreadState *saved;
} Scan;

/* Where the line starts that a document stands in. */
static int64_t line_of(const Scan *s, const char *document, int64_t stop) {
    if (document < s->base || document >= s->base + stop) return s->tail_at;
    while (document > s->base && document[-1] != '\n') document--;
    return document - s->base;
}

static int segment_end(Scan *s, Segment *seg, int64_t stop) {
    seg->stop = stop;
    seg->retrieved = 0;
    seg->hits = 0;
    if (s->tops) {
        s->doubt |= !surely_once(&s->topic);
        return topic_top(&s->topic, seg->topic, s->tops);
    }
    if (seg->topic >= 0) {
        size_t before = s->topic.hits.used;
        if (!topic_finish(&s->topic, s->index, seg->topic)) return 0;
        seg->retrieved = (int32_t)s->topic.count;
        seg->hits = (int64_t)((s->topic.hits.used - before) / 20);
        if (s->topic.twice) {
            int64_t at = line_of(s, s->topic.twice, s->size);
            if (s->twice_at < 0 || at < s->twice_at) s->twice_at = at;
        }
    }
    return push(&s->segments, seg, sizeof *seg);
}

static int keep_tag(Scan *s, const char *p, size_t n) {
    free(s->tag);
    s->tag = malloc(n + 1);
    if (!s->tag) return 0;
    memcpy(s->tag, p, n);
    s->tag_size = n;
    return 1;
}

/* The number of a topic; -1 if it is not judged. Returns 0 when memory ran out. */
static int find_topic(Scan *s, const char *name, size_t size, int32_t *topic) {
    size_t known = s->others.count;
    *topic = s->tops ? -1 : names_find((Names *)&s->index->topics, name, size, 0);
    if (*topic >= 0) return 1;
    int32_t other = names_find(&s->others, name, size, 1);
    if (s->tops) *topic = other;
    if (s->tops && s->others.count == known) s->doubt = 1;
    return other != -2;
}

/* Add the document of a line, its score as a whole number where that may come to be quicker. */
static int add_line(Scan *s, const Line *line, const char *safe, const char *name, size_t name_size, double value) {
    const char *document = line->at[s->layout.document];
    size_t size = line->size[s->layout.document];
#if defined(QUICK)
    const char *text = line->at[s->layout.value];
    size_t digits = line->size[s->layout.value];
    int64_t whole;
    int decimals;
    if (s->quick && safe && safe - text >= (ptrdiff_t)digits + 16 && whole_number(text, digits, &whole, &decimals))
        return topic_add_whole(&s->topic, document, size, whole, decimals);
#else
    (void)safe;
#endif
    return topic_add(&s->topic, name, name_size, document, size, value);
}

/* Read base[start:stop]. With `only` >= 0 every line is known to be of that topic. Returns 0 when memory ran out. */
static int scan_text(Scan *s, const char *base, int64_t start, int64_t stop, int32_t only, Reader *r) {
    Line line = {.count = 0};
    Segment seg = {.topic = only};
    const char *name = NULL, *tag = NULL;
    size_t name_size = 0, tag_size = 0;
    int64_t offset = start;
    if (!reader_open(r, base, start, stop)) return 0;
    if (r->tail) s->tail_at = r->tail_from - base;
    while (reader_line(r, &s->layout, &line, &offset)) {
        double value = 0;
        int fault = read_line(&line, &s->layout, r->safe, &value, &s->saved);
        if (fault) {
            if (!s->lenient) {
                s->fault = fault;
                s->fault_at = offset;
                return 1;
            }
            int64_t skip[2] = {offset, fault};
            if (only < 0 && !push(&s->skipped, skip, sizeof skip)) return 0;
            continue;
        }
        const char *t = line.at[s->layout.topic];
        size_t size = line.size[s->layout.topic];
        if (!name || (only < 0 && !same(t, size, name, name_size))) {
            if (only < 0) {
                if (name && !segment_end(s, &seg, offset)) return 0;
                if (!find_topic(s, t, size, &seg.topic)) return 0;
                topic_start(&s->topic);
            }
            seg.start = offset;
            name = t;
            name_size = size;
        }
        if (s->layout.label >= 0) {
            tag = line.at[s->layout.label];
            tag_size = line.size[s->layout.label];
        }
        if (seg.topic >= 0 && !add_line(s, &line, r->safe, name, name_size, value)) return 0;
#if defined(QUICK)
        if (s->quick && r->safe) {
            size_t prefix = (size_t)(line.at[s->layout.document] - base - offset);
            r->next = usual_lines(
                &s->topic, r->next, r->stop, base + offset, prefix, seg.topic >= 0, &tag, &tag_size);
        }
#endif
    }
    if (name && only < 0 && !segment_end(s, &seg, stop)) return 0;
    return !tag || keep_tag(s, tag, tag_size);
}

/* Whether lines of a run as TREC has them are read in the quick way: no convention looks at each id as it comes. */
static void scan_start(Scan *s, const Py_buffer *buffer) {
    const Layout *l = &s->layout;
    s->base = buffer->buf;
    s->size = buffer->len;
    s->quick = l->topic == 0 && l->document == 2 && l->value == 4 && l->label == 5 && l->fewest == 6 && l->most == 6 &&
               l->descending && !s->topic.order.collapse_size && !s->topic.order.drop_self;
}

static void scan_drop(Scan *s) {
    topic_drop(&s->topic);
    drop(&s->segments);
    drop(&s->skipped);
    names_drop(&s->others);
    free(s->tag);
}

/* ---- Python's side ---------------------------------------------------------------------- */

static const char *CAPSULE = "cranfield.Index";

static void capsule_free(PyObject *capsule) { index_free(PyCapsule_GetPointer(capsule, CAPSULE)); }

static int read_layout(PyObject *o, void *out) {
    Layout *l = out;
    return PyArg_ParseTuple(
        o, "iiiiiipppp", &l->fewest, &l->most, &l->topic, &l->document, &l->value, &l->label, &l->descending,
        &l->finite, &l->comments, &l->blanks);
}

static int read_order(PyObject *o, void *out) {
    Order *order = out;
    Py_ssize_t size;
    int fine = PyArg_ParseTuple(
        o, "ipipy#", &order->ties, &order->single, &order->twice, &order->drop_self, &order->collapse, &size);
    order->collapse_size = fine ? (size_t)size : 0;
    return fine;
}

static PyObject *names_out(const Names *s) {
    int64_t zero = 0;
    PyObject *offsets = s->offsets.used ? bytes_of(&s->offsets) : PyBytes_FromStringAndSize((char *)&zero, 8);
    return Py_BuildValue("NN", bytes_of(&s->text), offsets);
}

/* Rows in columns: topics and labels are numbered as they first appear. */
typedef struct {
    Names topics, labels;
    Block topic, text, offsets, value, label; /* int32, bytes and where they end, double, int32 */
    const char *name; /* the last row's topic */
    size_t name_size;
    int32_t number;
} Rows;

static int rows_start(Rows *rows) {
    int64_t zero = 0;
    return push(&rows->offsets, &zero, 8);
}

/* Append a row; one without a label has a size below 0. Returns 0 when memory ran out. */
static inline int rows_add(
    Rows *rows, const char *topic, size_t topic_size, const char *document, size_t size, double value, const char *label,
    int64_t label_size) {
    if (!rows->name || !same(topic, topic_size, rows->name, rows->name_size)) {
        rows->number = names_find(&rows->topics, topic, topic_size, 1);
        rows->name = topic;
        rows->name_size = topic_size;
    }
    if (label_size >= 0) {
        int32_t tag = names_find(&rows->labels, label, (size_t)label_size, 1);
        if (tag < 0 || !push(&rows->label, &tag, 4)) return 0;
    }
    if (rows->number < 0 || !push(&rows->topic, &rows->number, 4) || !push(&rows->text, document, size)) return 0;
    int64_t end = (int64_t)rows->text.used;
    return push(&rows->value, &value, 8) && push(&rows->offsets, &end, 8);
}

/* topics, topic, documents, value, labels, label: a tuple that other results are put behind or before. */
static PyObject *rows_out(const Rows *rows) {
    return Py_BuildValue(
        "NN(NN)NNN", names_out(&rows->topics), bytes_of(&rows->topic), bytes_of(&rows->text), bytes_of(&rows->offsets),
        bytes_of(&rows->value), names_out(&rows->labels), bytes_of(&rows->label));
}

static void rows_drop(Rows *rows) {
    names_drop(&rows->topics);
    names_drop(&rows->labels);
    Block *all[] = {&rows->topic, &rows->text, &rows->offsets, &rows->value, &rows->label};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) drop(all[i]);
}

PyDoc_STRVAR(parse_doc,
    "parse(buffer, layout, lenient) -> (fault, offset, (topics, topic, documents, value, labels, label), start, skipped)");

static PyObject *core_parse(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer buffer;
    Layout layout;
    int lenient;
    if (!PyArg_ParseTuple(args, "y*O&p", &buffer, read_layout, &layout, &lenient)) return NULL;
    Rows rows = {0};
    Block starts = {0}, skipped = {0};
    Reader r = {0};
    Line line = {.count = 0};
    int64_t offset = 0;
    int fault = FAULT_NONE, fine;
    PyThreadState *saved = PyEval_SaveThread();
    fine = rows_start(&rows) && reader_open(&r, buffer.buf, 0, buffer.len);
    while (fine && reader_line(&r, &layout, &line, &offset)) {
        double x = 0;
        fault = read_line(&line, &layout, r.safe, &x, &saved);
        if (fault && !lenient) break;
        if (fault) {
            int64_t skip[2] = {offset, fault};
            fault = FAULT_NONE;
            fine = push(&skipped, skip, sizeof skip);
            continue;
        }
        int labelled = layout.label >= 0;
        int32_t none = 0;
        fine = (labelled || push(&rows.label, &none, 4)) &&
               rows_add(
                   &rows, line.at[layout.topic], line.size[layout.topic], line.at[layout.document],
                   line.size[layout.document], x, labelled ? line.at[layout.label] : "",
                   labelled ? (int64_t)line.size[layout.label] : -1) &&
               push(&starts, &offset, 8);
    }
    PyEval_RestoreThread(saved);
    PyObject *answer =
        fine ? Py_BuildValue("iLNNN", fault, (long long)offset, rows_out(&rows), bytes_of(&starts), bytes_of(&skipped))
             : PyErr_NoMemory();
    free(r.tail);
    rows_drop(&rows);
    drop(&starts);
    drop(&skipped);
    PyBuffer_Release(&buffer);
    return answer;
}

/* ---- writing ------------------------------------------------------------------------------ */

/* A column of texts: bytes, and where each ends. */
typedef struct {
    Py_buffer text, offsets;
} Texts;

static int push_text(Block *out, const Texts *texts, int64_t i) {
    const int64_t *offsets = texts->offsets.buf;
    return push(out, (const char *)texts->text.buf + offsets[i], (size_t)(offsets[i + 1] - offsets[i]));
}

static int push_whole(Block *out, int64_t number) {
    char digits[24], *p = digits + sizeof digits;
    uint64_t rest = number < 0 ? (uint64_t)0 - (uint64_t)number : (uint64_t)number;
    do *--p = (char)('0' + rest % 10); while (rest /= 10);
    if (number < 0) *--p = '-';
    return push(out, p, (size_t)(digits + sizeof digits - p));
}

/* The shortest text that reads back to the same double, as Python has it. */
static int push_double(Block *out, double number) {
    char *text = PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    int fine = text && push(out, text, strlen(text));
    PyMem_Free(text);
    return fine;
}

PyDoc_STRVAR(lines_doc,
    "lines(topics, topic_offsets, documents, document_offsets, labels, label_offsets, topic, document, rank, score, label)\n"
    "-> the lines `topic Q0 document rank score label`; the last five number the texts, a row each");

static PyObject *core_lines(PyObject *self, PyObject *args) {
    (void)self;
    Texts topics, documents, labels;
    Py_buffer topic, document, rank, score, label;
    if (!PyArg_ParseTuple(
            args, "y*y*y*y*y*y*y*y*y*y*y*", &topics.text, &topics.offsets, &documents.text, &documents.offsets, &labels.text,
            &labels.offsets, &topic, &document, &rank, &score, &label))
        return NULL;
    Py_buffer *all[] = {&topics.text, &topics.offsets, &documents.text, &documents.offsets, &labels.text, &labels.offsets,
                        &topic, &document, &rank, &score, &label};
    Block out = {0};
    int64_t n = topic.len / 4;
    int fine = document.len / 8 == n && rank.len / 4 == n && score.len / 8 == n && label.len / 4 == n;
    if (!fine) PyErr_SetString(PyExc_ValueError, "lines: columns of different lengths");
    for (int64_t i = 0; fine && i < n; i++)
        fine = push_text(&out, &topics, ((const int32_t *)topic.buf)[i]) && push(&out, " Q0 ", 4) &&
               push_text(&out, &documents, ((const int64_t *)document.buf)[i]) && push(&out, " ", 1) &&
               push_whole(&out, ((const int32_t *)rank.buf)[i]) && push(&out, " ", 1) &&
               push_double(&out, ((const double *)score.buf)[i]) && push(&out, " ", 1) &&
               push_text(&out, &labels, ((const int32_t *)label.buf)[i]) && push(&out, "\n", 1);
    PyObject *answer = fine ? bytes_of(&out) : PyErr_Occurred() ? NULL : PyErr_NoMemory();
    drop(&out);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) PyBuffer_Release(all[i]);
    return answer;
}

/* ---- rows with named fields --------------------------------------------------------------- */

/* Which fields of a row hold what; label < 0: none does. */
typedef struct {
    int topic, document, value, label, descending;
} Wanted;

static int read_wanted(PyObject *o, void *out) {
    Wanted *w = out;
    return PyArg_ParseTuple(o, "iiiip", &w->topic, &w->document, &w->value, &w->label, &w->descending);
}

enum { NAMED = 64 }; /* fields that a row may have at most */

typedef struct {
    const char *at[NAMED];
    size_t size[NAMED];
    int count;
} Fields;

/* Append a row of fields. 1: fine, 0: no memory, -1: unusual. */
static int named_row(Rows *rows, const Wanted *w, const Fields *fields, PyThreadState **saved) {
    double value;
    if (!fields->size[w->topic] || !fields->size[w->document]) return -1;
    if (!number(fields->at[w->value], fields->size[w->value], &value, saved) || isinf(value)) return -1;
    return rows_add(
        rows, fields->at[w->topic], fields->size[w->topic], fields->at[w->document], fields->size[w->document],
        w->descending ? value : -value, w->label < 0 ? "" : fields->at[w->label],
        w->label < 0 ? -1 : (int64_t)fields->size[w->label]);
}

/* Split a line of separated values; `end` is where it ends. 0: quotes, a carriage return or a zero byte, or too many fields. */
static int split_separated(const char *p, const char *end, char separator, Fields *fields) {
    if (end > p && end[-1] == '\r') end--;
    fields->count = 0;
    for (const char *start = p;; p++) {
        if (p < end && *p != separator) {
            if (*p == '"' || *p == '\r' || !*p) return 0;
            continue;
        }
        if (fields->count == NAMED || p - start > 131072) return 0;
        fields->at[fields->count] = start;
        fields->size[fields->count++] = (size_t)(p - start);
        start = p + 1;
        if (p >= end) return 1;
    }
}

static const char *json_blank(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r')) p++;
    return p;
}

/* Behind a number as JSON has it, or NULL; also for -0, a whole number without a sign. */
static const char *json_number(const char *p, const char *end) {
    const char *digits, *start = p;
    if (p < end && *p == '-') p++;
    if (p < end && *p == '0') {
        p++;
    } else {
        for (digits = p; p < end && (unsigned)(*p - '0') < 10; p++) {}
        if (p == digits) return NULL;
    }
    if (p < end && *p == '.') {
        for (digits = ++p; p < end && (unsigned)(*p - '0') < 10; p++) {}
        if (p == digits) return NULL;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        for (digits = p; p < end && (unsigned)(*p - '0') < 10; p++) {}
        if (p == digits) return NULL;
    }
    return p - start == 2 && !memcmp(start, "-0", 2) ? NULL : p;
}

/* Behind a text without escapes, at whose first quote `p` stands, or NULL. */
static const char *json_text(const char *p, const char *end) {
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\' || (unsigned char)*p < ' ') return NULL;
    return p < end ? p + 1 : NULL;
}

enum { TEXT = 1, NUMBER = 2, WORD = 3 };

/* Split an object whose fields are called `keys`, in that order. 0 if it is anything else, or a value is no text, number or word. */
static int split_object(const char *p, const char *end, const Fields *keys, Fields *fields, char *kinds) {
    fields->count = keys->count;
    p = json_blank(p, end);
    if (p == end || *p++ != '{') return 0;
    for (int i = 0; i < keys->count; i++) {
        p = json_blank(p, end);
        size_t size = keys->size[i];
        if ((size_t)(end - p) < size + 3 || *p != '"' || p[size + 1] != '"' || !same(p + 1, size, keys->at[i], size)) return 0;
        p = json_blank(p + size + 2, end);
        if (p == end || *p++ != ':') return 0;
        const char *start = p = json_blank(p, end);
        if (p == end) return 0;
        kinds[i] = *p == '"' ? TEXT : (unsigned)(*p - '0') < 10 || *p == '-' ? NUMBER : WORD;
        if (kinds[i] == TEXT) {
            p = json_text(p, end);
            start++;
        } else if (kinds[i] == NUMBER) {
            p = json_number(p, end);
        } else {
            size_t left = (size_t)(end - p);
            int word = left >= 5 && !memcmp(p, "false", 5) ? 5 : left >= 4 && (!memcmp(p, "true", 4) || !memcmp(p, "null", 4)) ? 4 : 0;
            p = word ? p + word : NULL;
        }
        if (!p) return 0;
        fields->at[i] = start;
        fields->size[i] = (size_t)(p - start) - (kinds[i] == TEXT);
        p = json_blank(p, end);
        if (p == end || *p++ != (i + 1 < keys->count ? ',' : '}')) return 0;
    }
    return json_blank(p, end) == end;
}

/* An id: a text, or a whole number as its digits. */
static int is_id(const Fields *fields, const char *kinds, int i) {
    if (kinds[i] == TEXT) return 1;
    if (kinds[i] != NUMBER) return 0;
    for (size_t k = 0; k < fields->size[i]; k++)
        if ((unsigned)(fields->at[i][k] - '0') >= 10) return 0;
    return 1;
}

static int only_blanks(const char *p, const char *end) {
    while (p < end && is_blank(*p)) p++;
    return p == end;
}

PyDoc_STRVAR(named_doc,
    "named(buffer, start, separator, count, keys, wanted)\n"
    "-> (topics, topic, documents, value, labels, label) of lines with so many separated values, or (separator \"\") of lines that\n"
    "are objects with these keys; None if anything is unusual, and a slower reader is to say what");

static PyObject *core_named(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer buffer;
    long long start;
    const char *separator;
    Py_ssize_t size;
    int count;
    PyObject *names;
    Wanted wanted;
    if (!PyArg_ParseTuple(
            args, "y*Ly#iO!O&", &buffer, &start, &separator, &size, &count, &PyTuple_Type, &names, read_wanted, &wanted))
        return NULL;
    Fields keys = {.count = (int)PyTuple_Size(names)}, fields = {.count = 0};
    char kinds[NAMED];
    int fine = keys.count <= NAMED && start >= 0 && start <= buffer.len ? 1 : -1;
    for (int i = 0; fine > 0 && i < keys.count; i++) {
        PyObject *key = PyTuple_GetItem(names, i);
        Py_ssize_t n;
        char *text;
        if (PyBytes_AsStringAndSize(key, &text, &n) < 0) {
            PyBuffer_Release(&buffer);
            return NULL;
        }
        keys.at[i] = text;
        keys.size[i] = (size_t)n;
    }
    Rows rows = {0};
    PyThreadState *saved = PyEval_SaveThread();
    if (fine > 0) fine = rows_start(&rows);
    const char *p = (const char *)buffer.buf + (fine > 0 ? start : 0), *stop = (const char *)buffer.buf + buffer.len, *end;
    for (; fine > 0 && p < stop; p = end + 1) {
        end = memchr(p, '\n', (size_t)(stop - p));
        if (!end) end = stop;
        if (size ? end == p || (end == p + 1 && *p == '\r') : only_blanks(p, end)) continue;
        if (size) {
            fine = split_separated(p, end, *separator, &fields) && fields.count == count ? 1 : -1;
        } else {
            fine = split_object(p, end, &keys, &fields, kinds) && is_id(&fields, kinds, wanted.topic) &&
                           is_id(&fields, kinds, wanted.document) && kinds[wanted.value] == NUMBER &&
                           (wanted.label < 0 || is_id(&fields, kinds, wanted.label))
                       ? 1
                       : -1;
        }
        if (fine > 0) fine = named_row(&rows, &wanted, &fields, &saved);
    }
    PyEval_RestoreThread(saved);
    PyObject *answer = fine > 0 ? rows_out(&rows) : fine < 0 ? Py_NewRef(Py_None) : PyErr_NoMemory();
    rows_drop(&rows);
    PyBuffer_Release(&buffer);
    return answer;
}

/* Fill an index from columns; rows are grouped by topic. Returns 0 when memory ran out. */
static int index_fill(
    Index *x, const char *names, const int64_t *name_offsets, int64_t topics, const int32_t *topic, const char *text,
    const int64_t *offsets, int64_t rows, int32_t *first) {
    for (int64_t i = 0; i < topics; i++)
        if (names_find(&x->topics, names + name_offsets[i], (size_t)(name_offsets[i + 1] - name_offsets[i]), 1) < 0)
            return 0;
    x->size = rows;
    x->offsets = malloc(((size_t)rows + 1) * 8);
    x->table = malloc(((size_t)topics + 1) * 8);
    x->mask = malloc(((size_t)topics + 1) * 8);
    x->sieve = malloc(((size_t)topics + 1) * 8);
    x->holes = malloc(((size_t)topics + 1) * 8);
    x->rows = calloc((size_t)topics + 1, 8);
    x->again = calloc((size_t)rows + 1, 1);
    if (!x->again || !x->offsets || !x->table || !x->mask || !x->sieve || !x->holes || !x->rows || !reserve(&x->text, 1))
        return 0;
    if (!push(&x->text, text, (size_t)offsets[rows])) return 0;
    memcpy(x->offsets, offsets, ((size_t)rows + 1) * 8);
    for (int64_t i = 0; i < rows; i++) x->rows[topic[i] + 1]++;
    int64_t slots = 0, words = 0;
    for (int64_t t = 0; t < topics; t++) {
        uint64_t room = 16; /* sparse: most look-ups find nothing, and should see that at once */
        while (room < (uint64_t)x->rows[t + 1] * 3) room *= 2;
        x->table[t] = slots;
        x->mask[t] = room - 1;
        slots += (int64_t)room;
        x->sieve[t] = words;
        x->holes[t] = room / 4 - 1; /* some 48 bits a document */
        words += (int64_t)(room / 4);
        x->rows[t + 1] += x->rows[t];
    }
    x->slots = calloc((size_t)slots + 1, 8);
    x->filter = calloc((size_t)words + 1, 8);
    if (!x->slots || !x->filter) return 0;
    for (int64_t i = 0; i < rows; i++) {
        const char *p = x->text.data + offsets[i];
        size_t n = (size_t)(offsets[i + 1] - offsets[i]);
        uint64_t h = hash(p, n);
        first[i] = index_find(x, topic[i], p, n, h);
        x->again[i] = first[i] >= 0;
        if (x->again[i]) continue;
        first[i] = (int32_t)i;
        uint64_t *table = x->slots + x->table[topic[i]];
        size_t slot = h & x->mask[topic[i]];
        while (table[slot]) slot = (slot + 1) & x->mask[topic[i]];
        table[slot] = (h & UINT64_C(0xFFFFFFFF00000000)) | (uint64_t)(i + 1);
        x->filter[x->sieve[topic[i]] + (int64_t)(h >> 32 & x->holes[topic[i]])] |= UINT64_C(1) << (h >> 26 & 63);
    }
    return 1;
}

PyDoc_STRVAR(index_doc, "index(names, name_offsets, topic, text, offsets) -> (capsule, first)");

static PyObject *core_index(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer names, name_offsets, topic, text, offsets;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*", &names, &name_offsets, &topic, &text, &offsets)) return NULL;
    Py_buffer *all[] = {&names, &name_offsets, &topic, &text, &offsets};
    int64_t rows = topic.len / 4, topics = name_offsets.len / 8 - 1;
    Index *x = calloc(1, sizeof *x);
    PyObject *first = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)rows * 4), *capsule = NULL;
    if (first && x &&
        index_fill(
            x, names.buf, name_offsets.buf, topics, topic.buf, text.buf, offsets.buf, rows,
            (int32_t *)PyBytes_AsString(first)))
        capsule = PyCapsule_New(x, CAPSULE, capsule_free);
    else
        PyErr_NoMemory();
    if (!capsule) index_free(x);
    for (size_t i = 0; i < 5; i++) PyBuffer_Release(all[i]);
    if (!capsule) {
        Py_XDECREF(first);
        return NULL;
    }
    return Py_BuildValue("NN", capsule, first);
}

static PyObject *scan_out(Scan *s) {
    PyObject *tag = s->tag ? PyBytes_FromStringAndSize(s->tag, (Py_ssize_t)s->tag_size) : Py_NewRef(Py_None);
    return Py_BuildValue(
        "iLLNNNNNN", s->fault, (long long)s->fault_at, (long long)s->twice_at, bytes_of(&s->segments),
        bytes_of(&s->topic.hits), names_out(&s->others), bytes_of(&s->skipped), tag, bytes_of(&s->topic.single));
}

PyDoc_STRVAR(scan_doc,
    "scan(index, buffer, start, stop, layout, order, lenient)\n"
    "-> (fault, offset, duplicate_offset, segments, hits, others, skipped, tag, hits as 32-bit floats have them)");

static PyObject *core_scan(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule;
    Py_buffer buffer;
    long long start, stop;
    Scan s = {.fault_at = -1, .twice_at = -1};
    if (!PyArg_ParseTuple(
            args, "Oy*LLO&O&p", &capsule, &buffer, &start, &stop, read_layout, &s.layout, read_order, &s.topic.order,
            &s.lenient))
        return NULL;
    PyObject *answer = NULL;
    s.index = PyCapsule_GetPointer(capsule, CAPSULE);
    if (s.index && start >= 0 && start <= stop && stop <= buffer.len) {
        Reader r = {0};
        scan_start(&s, &buffer);
        s.saved = PyEval_SaveThread();
        int fine = scan_text(&s, buffer.buf, start, stop, -1, &r);
        PyEval_RestoreThread(s.saved);
        free(r.tail);
        answer = fine ? scan_out(&s) : PyErr_NoMemory();
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "scan: a stretch outside the buffer");
    }
    scan_drop(&s);
    PyBuffer_Release(&buffer);
    return answer;
}

PyDoc_STRVAR(tops_doc,
    "tops(buffer, layout, order, depth, lenient)\n"
    "-> (fault, offset, topics, topic, rank, score, (documents, offsets), skipped), or None where that takes a closer look");

static PyObject *core_tops(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer buffer;
    long long depth;
    int64_t zero = 0;
    Scan s = {.fault_at = -1, .twice_at = -1};
    Tops tops = {0};
    if (!PyArg_ParseTuple(args, "y*O&O&Lp", &buffer, read_layout, &s.layout, read_order, &s.topic.order, &depth, &s.lenient))
        return NULL;
    Reader r = {0};
    tops.depth = depth > 0 ? (size_t)depth : 0;
    s.tops = &tops;
    scan_start(&s, &buffer);
    s.saved = PyEval_SaveThread();
    int fine = push(&tops.offsets, &zero, 8) && scan_text(&s, buffer.buf, 0, buffer.len, -1, &r);
    PyEval_RestoreThread(s.saved);
    free(r.tail);
    PyObject *answer = NULL;
    if (!fine)
        PyErr_NoMemory();
    else if (s.doubt && !s.fault)
        answer = Py_NewRef(Py_None);
    else
        answer = Py_BuildValue(
            "iLNNNN(NN)N", s.fault, (long long)s.fault_at, names_out(&s.others), bytes_of(&tops.topic), bytes_of(&tops.rank),
            bytes_of(&tops.score), bytes_of(&tops.text), bytes_of(&tops.offsets), bytes_of(&s.skipped));
    tops_drop(&tops);
    scan_drop(&s);
    PyBuffer_Release(&buffer);
    return answer;
}

PyDoc_STRVAR(gather_doc,
    "gather(index, topic, buffer, stretches, layout, order, lenient) -> as scan, for one topic in several stretches");

static PyObject *core_gather(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule;
    Py_buffer buffer, stretches;
    int topic;
    Scan s = {.fault_at = -1, .twice_at = -1};
    if (!PyArg_ParseTuple(
            args, "Oiy*y*O&O&p", &capsule, &topic, &buffer, &stretches, read_layout, &s.layout, read_order,
            &s.topic.order, &s.lenient))
        return NULL;
    PyObject *answer = NULL;
    s.index = PyCapsule_GetPointer(capsule, CAPSULE);
    if (s.index) {
        const int64_t *at = stretches.buf;
        Py_ssize_t count = stretches.len / 16;
        Segment seg = {.topic = topic};
        Reader *readers = calloc((size_t)count + 1, sizeof *readers);
        scan_start(&s, &buffer);
        s.saved = PyEval_SaveThread();
        int fine = readers != NULL;
        topic_start(&s.topic);
        for (Py_ssize_t i = 0; fine && i < count; i++)
            fine = scan_text(&s, buffer.buf, at[2 * i], at[2 * i + 1], topic, readers + i);
        fine = fine && segment_end(&s, &seg, 0);
        PyEval_RestoreThread(s.saved);
        for (Py_ssize_t i = 0; readers && i < count; i++) free(readers[i].tail);
        free(readers);
        answer = fine ? scan_out(&s) : PyErr_NoMemory();
    }
    scan_drop(&s);
    PyBuffer_Release(&stretches);
    PyBuffer_Release(&buffer);
    return answer;
}

PyDoc_STRVAR(boundary_doc, "boundary(buffer, offset) -> the first line at or after offset that starts another topic");

static PyObject *core_boundary(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer buffer;
    long long offset;
    if (!PyArg_ParseTuple(args, "y*L", &buffer, &offset)) return NULL;
    const char *base = buffer.buf, *end = base + buffer.len, *p = base + offset, *topic = NULL;
    size_t size = 0;
    if (p > base) {
        p = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        p = p ? p + 1 : end;
    }
    while (p < end) {
        const char *next = memchr(p, '\n', (size_t)(end - p)), *start = p;
        const char *stop = next ? next : end;
        while (start < stop && is_blank(*start)) start++;
        const char *q = start;
        while (q < stop && !is_blank(*q)) q++;
        if (topic && !same(start, (size_t)(q - start), topic, size)) break;
        topic = start;
        size = (size_t)(q - start);
        p = next ? next + 1 : end;
    }
    long long answer = p - base;
    PyBuffer_Release(&buffer);
    return PyLong_FromLongLong(answer);
}

PyDoc_STRVAR(columns_doc,
    "columns(index, topics, places, text, offsets, value, order) -> (duplicate_place, retrieved, hits)\n"
    "`topics` numbers the index's topic of each place, grouped; `places` says which row stands there.");

/* The last row whose text starts at or before a place. */
static int64_t row_of(const int64_t *offsets, int64_t rows, int64_t place) {
    int64_t low = 0, high = rows;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (offsets[middle] <= place) low = middle + 1; else high = middle;
    }
    return low - 1;
}

static PyObject *core_columns(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule;
    Py_buffer topics, places, text, offsets, value;
    Topic t = {0};
    if (!PyArg_ParseTuple(
            args, "Oy*y*y*y*y*O&", &capsule, &topics, &places, &text, &offsets, &value, read_order, &t.order))
        return NULL;
    PyObject *answer = NULL;
    const Index *x = PyCapsule_GetPointer(capsule, CAPSULE);
    Py_buffer *all[] = {&topics, &places, &text, &offsets, &value};
    if (x) {
        const int32_t *topic = topics.buf;
        const int64_t *place = places.buf, *offset = offsets.buf;
        const double *score = value.buf;
        int64_t n = topics.len / 4, twice = -1;
        PyObject *retrieved = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)x->topics.count * 4);
        int fine = retrieved != NULL;
        int32_t *counts = fine ? (int32_t *)PyBytes_AsString(retrieved) : NULL;
        if (fine) memset(counts, 0, x->topics.count * 4);
        PyThreadState *saved = PyEval_SaveThread();
        for (int64_t i = 0; fine && i < n;) {
            int32_t now = topic[i];
            const char *name = x->topics.text.data + name_at(&x->topics, (size_t)now);
            size_t name_size = (size_t)(name_at(&x->topics, (size_t)now + 1) - name_at(&x->topics, (size_t)now));
            topic_start(&t);
            for (; fine && i < n && topic[i] == now; i++) {
                int64_t row = place[i];
                fine = topic_add(
                    &t, name, name_size, (const char *)text.buf + offset[row], (size_t)(offset[row + 1] - offset[row]),
                    score[row]);
            }
            fine = fine && topic_finish(&t, x, now);
            counts[now] = (int32_t)t.count;
            if (fine && t.twice) {
                int64_t row = row_of(offset, offsets.len / 8 - 1, t.twice - (const char *)text.buf);
                if (twice < 0 || row < twice) twice = row;
            }
        }
        PyEval_RestoreThread(saved);
        if (fine) {
            answer = Py_BuildValue("LNNN", (long long)twice, retrieved, bytes_of(&t.hits), bytes_of(&t.single));
        } else {
            Py_XDECREF(retrieved);
            PyErr_NoMemory();
        }
    }
    topic_drop(&t);
    for (size_t i = 0; i < 5; i++) PyBuffer_Release(all[i]);
    return answer;
}

/* ---- runs in dicts ---------------------------------------------------------------------- */

typedef struct {
    double score;
    int64_t place;
} Entry;

static int compare_entries(const void *a, const void *b) {
    const Entry *p = a, *q = b;
    int order = (p->score < q->score) - (p->score > q->score);
    return order ? order : (p->place > q->place) - (p->place < q->place);
}

typedef struct {
    Order order;
    Block places; /* Entry, in the dict's order or, once sorted, by score */
    PyObject *values; /* dict.values */
    PyObject *keys; /* the topic's documents in the dict's order, once a tie asks for them */
    Block known;    /* the same as borrowed pointers, where dict_read_plain has passed all keys anyway */
    Block group;  /* Answer: the documents of one tie group; later the hits in order */
    PyObject *held; /* encoded ids that must live as long as the group */
    Block found;  /* Answer: row and score of the judged documents of this topic */
    Block hits;
    Block single; /* as in Topic */
    int64_t searched; /* documents whose ids were searched for NUL */
} Dict;

/* A NUL in a document's id changes no score, and to look into each of 250,000 keys is a fifth of the time of it all: it is
 * searched for in topics until this many documents have been. twin.py has the same number. */
#define NULL_SEARCHED 20000

/* The bytes of an id, as `encode` in table.py makes them. */
static int id_bytes(Dict *d, PyObject *key, Answer *a) {
    Py_ssize_t size;
    const char *p = PyUnicode_AsUTF8AndSize(key, &size);
    if (!p) {
        PyErr_Clear();
        PyObject *raw = PyUnicode_AsEncodedString(key, "utf-8", "surrogateescape");
        if (!raw) {
            PyErr_Clear();
            raw = PyUnicode_AsEncodedString(key, "utf-8", "surrogatepass");
        }
        if (!raw || PyList_Append(d->held, raw) < 0) {
            Py_XDECREF(raw);
            return 0;
        }
        p = PyBytes_AsString(raw);
        size = PyBytes_Size(raw);
        Py_DECREF(raw);
    }
    a->document = p;
    a->size = (uint32_t)size;
    return 1;
}

/* Name the document at a place of the dict, whose key or score is not what it should be; native.py words it. */
static int bad_score(PyObject *topic, PyObject *documents, Py_ssize_t place, PyObject *score) {
    PyErr_Clear();
    PyObject *keys = PyDict_Keys(documents);
    PyObject *detail = keys && place < PyList_Size(keys)
                           ? Py_BuildValue("OOO", topic, PyList_GetItem(keys, place), score)
                           : NULL;
    if (detail) PyErr_SetObject(PyExc_LookupError, detail);
    Py_XDECREF(detail);
    Py_XDECREF(keys);
    return 0;
}

/* Whether a key holds a NUL; one that is no text does not. Ids are short: a call of memchr would cost more than the rest. */
static int holds_null(PyObject *key) {
    Py_ssize_t size, i = 0;
    const char *id = PyUnicode_AsUTF8AndSize(key, &size);
    if (!id) { /* no text, or one with lone surrogates */
        PyErr_Clear();
        return PyUnicode_Check(key) && PyUnicode_FindChar(key, 0, 0, PyUnicode_GetLength(key), 1) >= 0;
    }
    for (uint64_t word; i + 8 <= size; i += 8) {
        memcpy(&word, id + i, 8);
        if ((word - 0x0101010101010101u) & ~word & 0x8080808080808080u) return 1; /* a byte of it is 0 */
    }
    for (; i < size; i++)
        if (!id[i]) return 1;
    return 0;
}

/* Refuse a dict whose keys hold a NUL; run.py words it. */
static int without_null(PyObject *documents) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(documents, &at, &key, &value))
        if (holds_null(key)) {
            PyErr_SetString(PyExc_ValueError, "NUL in an id");
            return 0;
        }
    return 1;
}

/* Take the scores of one topic out of its dict. Keys are left alone, each would be a cache miss and few are needed;
 * hence the view: PyDict_Next and PyDict_Values read the hash of every key. */
static int dict_read(Dict *d, PyObject *topic, PyObject *documents, int *sorted) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    double previous = HUGE_VAL;
    d->places.used = d->found.used = 0;
    *sorted = 1;
    if (PyDict_Next(documents, &at, &key, &value) && !PyUnicode_Check(key))
        return bad_score(topic, documents, 0, value);
    PyObject *view = PyObject_CallFunctionObjArgs(d->values, documents, NULL);
    PyObject *values = view ? PySequence_List(view) : NULL;
    Py_XDECREF(view);
    if (!values) return 0;
    Py_ssize_t n = PyList_Size(values), i = 0;
    int fine = reserve(&d->places, (size_t)n * sizeof(Entry));
    Entry *places = (Entry *)d->places.data;
    for (; fine && i < n; i++) {
        value = PyList_GetItem(values, i);
        double score = PyFloat_AsDouble(value);
        fine = score == score && !(score == -1.0 && PyErr_Occurred());
        if (!fine) bad_score(topic, documents, i, value);
        if (d->order.single) score = (double)(float)score;
        *sorted &= score <= previous;
        previous = score;
        places[i].score = score;
        places[i].place = i;
    }
    d->places.used = (size_t)i * sizeof(Entry);
    Py_DECREF(values);
    return fine;
}

/* The same for a dict of nothing but floats under nothing but texts, with its keys: where many documents are judged, each
 * key is looked at anyway, and in their order it costs least. No code of others runs meanwhile, so borrowed keys are safe.
 * 0: read it the other way, which also knows what is wrong. */
static int dict_read_plain(Dict *d, PyObject *documents, int search, int *sorted) {
    PyObject *key, *value;
    Py_ssize_t at = 0, n = 0, size = PyDict_Size(documents);
    double previous = HUGE_VAL;
    if (!reserve(&d->places, (size_t)size * sizeof(Entry)) || !reserve(&d->known, (size_t)size * sizeof key)) return 0;
    Entry *places = (Entry *)d->places.data;
    PyObject **keys = (PyObject **)d->known.data;
    *sorted = 1;
    while (n < size && PyDict_Next(documents, &at, &key, &value)) {
        if (Py_TYPE(key) != &PyUnicode_Type || Py_TYPE(value) != &PyFloat_Type) return 0;
        double score = PyFloat_AsDouble(value);
        if (score != score || (search && holds_null(key))) return 0;
        if (d->order.single) score = (double)(float)score;
        *sorted &= score <= previous;
        previous = score;
        keys[n] = key;
        places[n].score = score;
        places[n].place = n;
        n++;
    }
    d->places.used = (size_t)n * sizeof(Entry);
    d->known.used = (size_t)n * sizeof key;
    d->found.used = 0;
    return 1;
}

/* The span of places with this score: how many are higher, and how many are equal. */
static void span(const Entry *p, int64_t n, double score, int sorted, int64_t *higher, int64_t *equal) {
    int64_t above = 0, level = 0;
    if (sorted) {
        const Entry *low = p;
        for (int64_t size = n; size > 1; size -= size / 2) low += low[size / 2 - 1].score > score ? size / 2 : 0;
        above = low - p + (n > 0 && low->score > score);
        while (above + level < n && p[above + level].score == score) level++;
    } else {
        for (int64_t i = 0; i < n; i++) {
            above += p[i].score > score;
            level += p[i].score == score;
        }
    }
    *higher = above;
    *equal = level;
}

static int compare_scores(const void *a, const void *b) {
    double p = ((const Answer *)a)->score, q = ((const Answer *)b)->score;
    return (p < q) - (p > q);
}

/* Collect the documents with this score, or that equal it as 32-bit floats, ordered by id; each remembers its place in the
 * dict's order. */
static int group_collect(Dict *d, PyObject *documents, double score, int single, int64_t from, int64_t to) {
    const Entry *p = (const Entry *)d->places.data;
    d->group.used = 0;
    PyObject *const *known = d->known.used ? (PyObject *const *)d->known.data : NULL;
    if (!known && !d->keys) d->keys = PyDict_Keys(documents);
    if (!known && !d->keys) return 0;
    for (int64_t i = from, place = 0; i < to; i++) {
        if (single ? (float)p[i].score != (float)score : p[i].score != score) continue;
        Answer a = {.place = (uint64_t)place++};
        PyObject *key = known ? known[p[i].place] : PyList_GetItem(d->keys, (Py_ssize_t)p[i].place);
        if (!key || !id_bytes(d, key, &a) || !push(&d->group, &a, sizeof a)) return 0;
    }
    qsort(d->group.data, d->group.used / sizeof(Answer), sizeof(Answer), compare_ascending);
    return 1;
}

/* Where a document stands within its tie group, from 0. */
static int64_t place_in_group(const Dict *d, const Answer *document) {
    const Answer *group = (const Answer *)d->group.data;
    int64_t n = (int64_t)(d->group.used / sizeof(Answer)), low = 0, high = n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (by_id(group + middle, document) < 0) low = middle + 1; else high = middle;
    }
    if (d->order.ties == TIES_ASCENDING) return low;
    return d->order.ties == TIES_DESCENDING ? n - 1 - low : (int64_t)group[low].place;
}

/* Where a document would stand among those whose scores equal its own as 32-bit floats, if these are more than those that tie:
 * `higher` documents have a higher score, `equal` ones the same. */
static int dict_single(
    Dict *d, PyObject *documents, PyObject *name, int32_t t, Answer a, int sorted, int64_t higher, int64_t equal) {
    const Entry *p = (const Entry *)d->places.data;
    int64_t n = (int64_t)(d->places.used / sizeof(Entry)), from = 0, to = n, above = 0, level = 0;
    float own = (float)a.score;
    if (sorted) {
        for (from = higher; from > 0 && (float)p[from - 1].score == own;) from--;
        for (to = higher + equal; to < n && (float)p[to].score == own;) to++;
        above = from;
        level = to - from;
    } else {
        for (int64_t i = 0; i < n; i++) {
            float other = (float)p[i].score;
            above += other > own;
            level += other == own;
        }
    }
    if (level == equal) return 1;
    if (!id_bytes(d, name, &a) || !group_collect(d, documents, a.score, 1, from, to)) return 0;
    size_t rank = (size_t)(above + place_in_group(d, &a) + 1);
    return add_hit(&d->single, t, a.row, rank, (size_t)above + 1, (size_t)(above + level));
}

/* Put the hits of one topic, from byte `first` on, into the order of their ranks, which run from 1 to n. */
static int order_hits(Dict *d, size_t first, int64_t n) {
    typedef int32_t Hit[5];
    size_t count = (d->hits.used - first) / sizeof(Hit), filled = 0;
    if (count < 2) return 1;
    d->group.used = 0;
    if (!reserve(&d->group, (size_t)(n + 1) * sizeof(uint32_t) + count * sizeof(Hit))) return 0;
    uint32_t *at = (uint32_t *)d->group.data; /* rank → number of the hit + 1 */
    Hit *ordered = (Hit *)(at + n + 1), *hits = (Hit *)(d->hits.data + first);
    memset(at, 0, (size_t)(n + 1) * sizeof *at);
    for (size_t i = 0; i < count; i++) at[hits[i][2]] = (uint32_t)i + 1;
    for (int64_t rank = 1; rank <= n; rank++)
        if (at[rank]) memcpy(ordered[filled++], hits[at[rank] - 1], sizeof(Hit));
    memcpy(hits, ordered, filled * sizeof(Hit));
    return filled == count;
}

/* Look the topic's judged documents up in its dict and rank those that are there. */
static int dict_topic(Dict *d, const Index *x, int32_t t, PyObject *names, PyObject *topic, PyObject *documents) {
    int sorted, many = (x->rows[t + 1] - x->rows[t]) * 8 > PyDict_Size(documents);
    int search = d->searched < NULL_SEARCHED;
    d->searched += PyDict_Size(documents);
    d->known.used = 0;
    if (!(many && dict_read_plain(d, documents, search, &sorted)) &&
        !((!search || without_null(documents)) && dict_read(d, topic, documents, &sorted)))
        return 0;
    for (int64_t row = x->rows[t]; row < x->rows[t + 1]; row++) {
        if (x->again[row]) continue;
        PyObject *value = PyDict_GetItemWithError(documents, PyList_GetItem(names, (Py_ssize_t)row));
        if (!value) {
            if (PyErr_Occurred()) return 0;
            continue;
        }
        Answer a = {.score = PyFloat_AsDouble(value), .row = (int32_t)row};
        if (d->order.single) a.score = (double)(float)a.score;
        if (!push(&d->found, &a, sizeof a)) return 0;
    }
    size_t found = d->found.used / sizeof(Answer), first = d->hits.used;
    int64_t n = (int64_t)(d->places.used / sizeof(Entry));
    if (!sorted && found > 16) { /* for a few, counting is quicker than sorting */
        qsort(d->places.data, (size_t)n, sizeof(Entry), compare_entries);
        sorted = 1;
    }
    Answer *answers = (Answer *)d->found.data;
    const Entry *places = (const Entry *)d->places.data;
    size_t tied = 0;
    int64_t higher, equal;
    for (size_t i = 0; i < found; i++) {
        span(places, n, answers[i].score, sorted, &higher, &equal);
        if (equal == 0) continue; /* a number that changed while it was looked at */
        if (!d->order.single && d->order.ties != TIES_INPUT &&
            !dict_single(d, documents, PyList_GetItem(names, answers[i].row), t, answers[i], sorted, higher, equal))
            return 0;
        if (equal > 1)
            answers[tied++] = answers[i];
        else if (!add_hit(&d->hits, t, answers[i].row, (size_t)higher + 1, (size_t)higher + 1, (size_t)higher + 1))
            return 0;
    }
    if (tied > 1) qsort(answers, tied, sizeof *answers, compare_scores); /* so that each tie group is collected once */
    for (size_t i = 0; i < tied; i++) {
        Answer *a = answers + i;
        span(places, n, a->score, sorted, &higher, &equal);
        int64_t from = sorted ? higher : 0, to = sorted ? higher + equal : n;
        if (!id_bytes(d, PyList_GetItem(names, a->row), a)) return 0;
        if ((i == 0 || a[-1].score != a->score) && !group_collect(d, documents, a->score, 0, from, to)) return 0;
        size_t rank = (size_t)(higher + place_in_group(d, a) + 1);
        if (!add_hit(&d->hits, t, a->row, rank, (size_t)higher + 1, (size_t)(higher + equal))) return 0;
    }
    if (!order_hits(d, first, n)) return 0;
    Py_CLEAR(d->keys);
    return PyList_SetSlice(d->held, 0, PyList_Size(d->held), NULL) == 0;
}

PyDoc_STRVAR(mapping_doc, "mapping(index, topics, documents, run, order) -> (retrieved, hits, hits as 32-bit floats have them)");

static PyObject *core_mapping(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *topics, *names, *run, *answer = NULL;
    Dict d = {0};
    if (!PyArg_ParseTuple(
            args, "OO!O!O!O&", &capsule, &PyList_Type, &topics, &PyList_Type, &names, &PyDict_Type, &run, read_order,
            &d.order))
        return NULL;
    const Index *x = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!x) return NULL;
    PyObject *retrieved = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)x->topics.count * 4);
    d.held = PyList_New(0);
    d.values = PyObject_GetAttrString((PyObject *)&PyDict_Type, "values");
    int fine = retrieved && d.held && d.values;
    int32_t *counts = fine ? (int32_t *)PyBytes_AsString(retrieved) : NULL;
    if (fine) memset(counts, 0, x->topics.count * 4);
    for (size_t t = 0; fine && t < x->topics.count; t++) {
        PyObject *topic = PyList_GetItem(topics, (Py_ssize_t)t);
        PyObject *documents = PyDict_GetItemWithError(run, topic);
        if (!documents) {
            fine = !PyErr_Occurred();
            continue;
        }
        PyObject *own = PyDict_Check(documents) ? Py_NewRef(documents)
                                                : PyObject_CallFunctionObjArgs((PyObject *)&PyDict_Type, documents, NULL);
        fine = own != NULL;
        if (!fine) break;
        counts[t] = (int32_t)PyDict_Size(own);
        fine = dict_topic(&d, x, (int32_t)t, names, topic, own);
        Py_DECREF(own);
    }
    if (fine)
        answer = Py_BuildValue("ONN", retrieved, bytes_of(&d.hits), bytes_of(&d.single));
    else if (!PyErr_Occurred())
        PyErr_NoMemory();
    Block *all[] = {&d.places, &d.known, &d.group, &d.found, &d.hits, &d.single};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) drop(all[i]);
    Py_XDECREF(d.values);
    Py_XDECREF(d.keys);
    Py_XDECREF(d.held);
    Py_XDECREF(retrieved);
    return answer;
}

/* Append what one topic's dict holds. 1: fine, 0: no memory, -1: unusual. */
static int dict_rows(PyObject *rows, int finite, PyObject *documents, Block *text, Block *offsets, Block *values) {
    PyObject *key, *value;
    Py_ssize_t at = 0, size;
    while (PyDict_Next(rows, &at, &key, &value)) {
        const char *id = Py_TYPE(key) == &PyUnicode_Type ? PyUnicode_AsUTF8AndSize(key, &size) : NULL;
        int usual = id && (Py_TYPE(value) == &PyFloat_Type || Py_TYPE(value) == &PyLong_Type);
        double number = usual ? PyFloat_AsDouble(value) : 0;
        if (!usual || number != number || (finite && isinf(number)) || (number == -1.0 && PyErr_Occurred())) {
            PyErr_Clear();
            return -1;
        }
        if (PyList_Append(documents, key) < 0 || !push(text, id, (size_t)size) || !push(values, &number, 8)) return 0;
        int64_t end = (int64_t)text->used;
        if (!push(offsets, &end, 8)) return 0;
    }
    return 1;
}

PyDoc_STRVAR(dicts_doc,
    "dicts(source, finite) -> (sizes, names, documents, offsets, values): the rows of {topic: {document: number}}; None if\n"
    "anything in it is no text, no dict or no plain number");

static PyObject *core_dicts(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *source, *topic, *rows;
    int finite;
    if (!PyArg_ParseTuple(args, "O!p", &PyDict_Type, &source, &finite)) return NULL;
    PyObject *documents = PyList_New(0);
    Block sizes = {0}, text = {0}, offsets = {0}, values = {0};
    int64_t zero = 0;
    Py_ssize_t at = 0;
    int fine = documents && push(&offsets, &zero, 8);
    while (fine > 0 && PyDict_Next(source, &at, &topic, &rows)) {
        if (Py_TYPE(topic) != &PyUnicode_Type || Py_TYPE(rows) != &PyDict_Type) fine = -1;
        int64_t size = fine > 0 ? PyDict_Size(rows) : 0;
        if (fine > 0) fine = push(&sizes, &size, 8) ? dict_rows(rows, finite, documents, &text, &offsets, &values) : 0;
    }
    PyObject *answer = NULL;
    if (fine > 0)
        answer = Py_BuildValue(
            "NONNN", bytes_of(&sizes), documents, bytes_of(&text), bytes_of(&offsets), bytes_of(&values));
    else if (fine < 0)
        answer = Py_NewRef(Py_None);
    else if (!PyErr_Occurred())
        PyErr_NoMemory();
    Block *all[] = {&sizes, &text, &offsets, &values};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) drop(all[i]);
    Py_XDECREF(documents);
    return answer;
}

PyDoc_STRVAR(hashes_doc, "hashes(text, offsets) -> the hash of each text (uint64) in this process");

static PyObject *core_hashes(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer text, offsets;
    if (!PyArg_ParseTuple(args, "y*y*", &text, &offsets)) return NULL;
    const int64_t *at = offsets.buf;
    size_t count = (size_t)offsets.len / sizeof *at;
    Block found = {0};
    int fine = reserve(&found, (count + 1) * sizeof(uint64_t));
    for (size_t i = 0; fine && i + 1 < count; i++) {
        uint64_t h = hash((const char *)text.buf + at[i], (size_t)(at[i + 1] - at[i]));
        fine = push(&found, &h, sizeof h);
    }
    PyObject *answer = fine ? bytes_of(&found) : PyErr_NoMemory();
    drop(&found);
    PyBuffer_Release(&text);
    PyBuffer_Release(&offsets);
    return answer;
}

static PyMethodDef methods[] = {
    {"parse", core_parse, METH_VARARGS, parse_doc},
    {"named", core_named, METH_VARARGS, named_doc},
    {"lines", core_lines, METH_VARARGS, lines_doc},
    {"index", core_index, METH_VARARGS, index_doc},
    {"scan", core_scan, METH_VARARGS, scan_doc},
    {"tops", core_tops, METH_VARARGS, tops_doc},
    {"gather", core_gather, METH_VARARGS, gather_doc},
    {"boundary", core_boundary, METH_VARARGS, boundary_doc},
    {"columns", core_columns, METH_VARARGS, columns_doc},
    {"mapping", core_mapping, METH_VARARGS, mapping_doc},
    {"dicts", core_dicts, METH_VARARGS, dicts_doc},
    {"hashes", core_hashes, METH_VARARGS, hashes_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "cranfield.base.kernels._core", "Parse, join, rank.", -1, methods, NULL, NULL, NULL, NULL,
};

/* Fill the seed from the system's source of chance. */
static int draw_seed(void) {
    PyObject *os = PyImport_ImportModule("os");
    PyObject *drawn = os ? PyObject_CallMethod(os, "urandom", "n", (Py_ssize_t)sizeof seed) : NULL;
    char *bytes = drawn ? PyBytes_AsString(drawn) : NULL;
    if (bytes) memcpy(seed, bytes, sizeof seed);
    Py_XDECREF(drawn);
    Py_XDECREF(os);
    return bytes != NULL;
}

PyMODINIT_FUNC PyInit__core(void) {
    if (!draw_seed()) return NULL;
    five[0] = 1;
    for (int i = 1; i < 28; i++) five[i] = five[i - 1] * 5;
#if defined(AVX2)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
        usual_lines = usual_lines_avx2;
#endif
    return PyModule_Create(&module);
}
