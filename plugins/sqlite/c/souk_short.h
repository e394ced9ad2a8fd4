/*
** Taken in by SQLite before all else (SQLITE_CUSTOM_INCLUDE in ../Cargo.toml, which says what to do when this file changes).
**
** Of a memcpy whose length is not known beforehand clang makes memory.copy, which wasmtime leaves the component for: a call of the host
** for every text of every row, most of which are shorter than what the call takes to get there. Up to 32 bytes are copied here, by two or
** four words that may overlap. memcmp is a function of wasi-libc that looks at one byte after the other: here it is eight.
**
** string.h declares both again, under the names that they have here, which C allows.
*/
static inline __attribute__((always_inline)) void *souk_memcpy(
  void *restrict to,
  const void *restrict from,
  __SIZE_TYPE__ n
){
  char *t = to;
  const char *f = from;
  if( __builtin_constant_p(n) || n>32 ){
    return __builtin_memcpy(to, from, n);
  }
  if( n>=8 ){
    __builtin_memcpy(t, f, 8);
    if( n>16 ){
      __builtin_memcpy(t+8, f+8, 8);
      __builtin_memcpy(t+n-16, f+n-16, 8);
    }
    __builtin_memcpy(t+n-8, f+n-8, 8);
  }else if( n>=4 ){
    __builtin_memcpy(t, f, 4);
    __builtin_memcpy(t+n-4, f+n-4, 4);
  }else if( n ){
    t[0] = f[0];
    t[n/2] = f[n/2];
    t[n-1] = f[n-1];
  }
  return to;
}

static int souk_compare(const void *left, const void *right, __SIZE_TYPE__ n){
  const unsigned char *l = left;
  const unsigned char *r = right;
  if( n>=8 ){
    __UINT64_TYPE__ a, b;
    __SIZE_TYPE__ at = 0;
    while( 1 ){
      __builtin_memcpy(&a, l+at, 8);
      __builtin_memcpy(&b, r+at, 8);
      if( a!=b ){
        return __builtin_bswap64(a)<__builtin_bswap64(b) ? -1 : 1;
      }
      if( at==n-8 ) return 0;
      at = at+16<=n ? at+8 : n-8;
    }
  }
  if( n>=4 ){
    __UINT32_TYPE__ a, b;
    __builtin_memcpy(&a, l, 4);
    __builtin_memcpy(&b, r, 4);
    if( a==b ){
      __builtin_memcpy(&a, l+n-4, 4);
      __builtin_memcpy(&b, r+n-4, 4);
      if( a==b ) return 0;
    }
    return __builtin_bswap32(a)<__builtin_bswap32(b) ? -1 : 1;
  }
  for(; n; l++, r++, n--){
    if( *l!=*r ) return *l<*r ? -1 : 1;
  }
  return 0;
}

static inline __attribute__((always_inline)) int souk_memcmp(
  const void *left,
  const void *right,
  __SIZE_TYPE__ n
){
  return __builtin_constant_p(n) ? __builtin_memcmp(left, right, n) : souk_compare(left, right, n);
}

#define memcpy souk_memcpy
#define memcmp souk_memcmp
